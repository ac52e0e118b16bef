//! What is lost is told, once and exactly.

use wharf_log::{Chunk, Mark, Reader, Retention, Stream, Streams, Writer, lines_back};
use wharf_model::Offset;

use crate::support::{files, keep_all, place, read_all};

#[test]
fn a_skip_is_a_gap() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    let mut waiting = Reader::open(&dir, Offset(0)).unwrap();
    let mut buf = [0; 64];
    writer.append(b"before").unwrap();
    assert_eq!(waiting.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(0), len: 6 });
    writer.skip(100);
    assert_eq!(writer.end(), Offset(106));
    writer.append(b"after").unwrap();

    assert_eq!(waiting.read(&mut buf).unwrap(), Chunk::Gap { from: Offset(6), to: Offset(106) });
    assert_eq!(waiting.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(106), len: 5 });
    assert_eq!(waiting.read(&mut buf).unwrap(), Chunk::End);
    assert_eq!(read_all(&dir, 0), (b"beforeafter".to_vec(), vec![(6, 106)]));
    assert_eq!(read_all(&dir, 50), (b"after".to_vec(), vec![(50, 106)]));
    assert_eq!(writer.read_at(Offset(50), &mut buf).unwrap(), 0);
    assert_eq!(writer.kept_from(Offset(50)), Offset(106));
    assert_eq!(writer.kept_from(Offset(3)), Offset(3));
    assert_eq!(writer.read_at(Offset(2), &mut buf).unwrap(), 4);

    drop(writer);
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"!").unwrap();
    assert_eq!(writer.end(), Offset(112));
    assert_eq!(read_all(&dir, 0), (b"beforeafter!".to_vec(), vec![(6, 106)]));
}

#[test]
fn many_skips_are_one_gap_and_leave_no_litter() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    for _ in 0..1000 {
        writer.skip(10);
    }
    writer.skip(0);
    assert_eq!(files(&dir).len(), 2);
    writer.append(b"x").unwrap();
    assert_eq!(read_all(&dir, 0), (b"x".to_vec(), vec![(0, 10_000)]));
}

#[test]
fn a_skip_that_cannot_be_written_yet_is_not_forgotten() {
    let (home, dir) = place();
    let away = home.path().join("away");
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"before").unwrap();

    // No segment can be made in a directory that is not there.
    std::fs::rename(&dir, &away).unwrap();
    writer.skip(4);
    writer.skip(6);
    assert_eq!(writer.end(), Offset(16));
    assert_eq!(writer.append(b"no").unwrap_err().kind(), std::io::ErrorKind::NotFound);
    writer.mark(Mark::Stream(Stream::Stderr), 1).unwrap_err();
    assert_eq!(writer.end(), Offset(16));
    assert_eq!(read_all(&away, 0), (b"before".to_vec(), vec![]));

    std::fs::rename(&away, &dir).unwrap();
    writer.append(b"after").unwrap();
    assert_eq!(read_all(&dir, 0), (b"beforeafter".to_vec(), vec![(6, 16)]));

    // Nor is the mark.
    let mut reader = Reader::open(&dir, Offset(16)).unwrap();
    let mut buf = [0; 9];
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(16), len: 5 });
    assert_eq!(Streams::new().split(&reader, Offset(16), 5).unwrap(), [(Stream::Stderr, 0..5)]);
}

#[test]
fn a_segment_that_cannot_be_made_does_not_stop_the_log() {
    let (home, dir) = place();
    let away = home.path().join("away");
    let mut writer = Writer::open(&dir, keep_all(4)).unwrap();
    writer.append(b"0123").unwrap();
    std::fs::rename(&dir, &away).unwrap();
    writer.append(b"4567").unwrap();
    std::fs::rename(&away, &dir).unwrap();
    writer.append(b"89").unwrap();
    assert_eq!(read_all(&dir, 0), (b"0123456789".to_vec(), vec![]));
    assert_eq!(files(&dir).len(), 4);
}

#[test]
fn a_reader_that_fell_behind_is_told_what_it_missed() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, Retention { total: 400, segment: 100 }).unwrap();
    writer.append(&[b'a'; 100]).unwrap();
    let mut reader = Reader::open(&dir, Offset(0)).unwrap();
    let mut buf = [0; 60];
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(0), len: 60 });
    for _ in 0..20 {
        writer.append(&[b'b'; 100]).unwrap();
    }
    // It holds the first segment open, so it gets the rest of that.
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(60), len: 40 });
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Gap { from: Offset(100), to: writer.start() });
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: writer.start(), len: 60 });
}

#[test]
fn lines_are_counted_across_a_gap() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"one\ntwo\nthr").unwrap();
    writer.skip(5);
    writer.append(b"ee\nfour\n").unwrap();
    assert_eq!(lines_back(&dir, 1).unwrap(), Offset(19));
    assert_eq!(lines_back(&dir, 2).unwrap(), Offset(8));
    assert_eq!(lines_back(&dir, 9).unwrap(), Offset(0));
}
