//! The index survives whatever its writer did not.

use std::fs::{self, OpenOptions};

use wharf_log::{Chunk, Mark, Reader, Record, Stream, Streams, Writer, marks};
use wharf_model::{Offset, Size};

use crate::support::{files, keep_all, place, read_all};

const SIZE: Size = Size { cols: 100, rows: 30 };

fn all(dir: &std::path::Path) -> Vec<Record> {
    marks(dir, Offset(0)..Offset(u64::MAX)).unwrap().map(Result::unwrap).collect()
}

fn short(dir: &std::path::Path) -> Vec<(u64, Mark)> {
    all(dir).into_iter().map(|record| (record.offset.0, record.mark)).collect()
}

#[test]
fn an_index_torn_anywhere_is_continued() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.mark(Mark::Resize(SIZE), 1).unwrap();
    writer.append(b"out").unwrap();
    writer.mark(Mark::Stream(Stream::Stderr), 2).unwrap();
    writer.append(b"err").unwrap();
    drop(writer);
    let index = dir.join(&files(&dir)[0]);
    let whole = fs::read(&index).unwrap();
    assert_eq!(whole.len(), 4 * 24);

    for cut in 0..=whole.len() {
        fs::write(&index, &whole[..cut]).unwrap();
        let stable = short(&dir);
        let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
        assert_eq!(writer.end(), Offset(6));
        writer.mark(Mark::Restart(9), 3).unwrap();
        writer.append(b"!").unwrap();
        let found = short(&dir);
        assert_eq!(found[..stable.len()], stable, "cut at {cut}");
        assert_eq!(found.last(), Some(&(6, Mark::Restart(9))), "cut at {cut}");
        assert!(found.is_sorted_by_key(|(offset, _)| *offset));
        assert_eq!(read_all(&dir, 0), (b"outerr!".to_vec(), vec![]));
        // Back to what it was.
        drop(writer);
        let log = dir.join(format!("{:020}.log", 0));
        OpenOptions::new().write(true).open(&log).unwrap().set_len(6).unwrap();
        for name in files(&dir).iter().filter(|name| !name.starts_with("00000000000000000000")) {
            fs::remove_file(dir.join(name)).unwrap();
        }
    }
}

#[test]
fn an_index_of_a_later_version_is_left_alone() {
    let (_home, dir) = place();
    Writer::open(&dir, keep_all(1 << 20)).unwrap().append(b"old").unwrap();
    let index = dir.join(&files(&dir)[0]);
    let mut bytes = fs::read(&index).unwrap();
    bytes[16] = 2;
    fs::write(&index, &bytes).unwrap();

    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"new").unwrap();
    assert_eq!(fs::read(&index).unwrap(), bytes);
    assert_eq!(read_all(&dir, 0), (b"oldnew".to_vec(), vec![]));
    assert_eq!(short(&dir), [(3, Mark::Stream(Stream::Stdout))]);
}

#[test]
fn records_beyond_the_bytes_give_way_to_those_of_the_next_writer() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"kept").unwrap();
    writer.mark(Mark::Time, 5).unwrap();
    writer.append(b"lost by the machine").unwrap();
    writer.mark(Mark::Stream(Stream::Stderr), 6).unwrap();
    writer.append(b"this too").unwrap();
    writer.mark(Mark::Restart(2), 6).unwrap();
    drop(writer);
    OpenOptions::new().write(true).open(dir.join(&files(&dir)[1])).unwrap().set_len(4).unwrap();

    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    // The loss took the mark with it, so this one is needed again.
    writer.mark(Mark::Stream(Stream::Stderr), 7).unwrap();
    writer.append(b"more bytes than were lost, by far").unwrap();
    let stdout = (0, Mark::Stream(Stream::Stdout));
    assert_eq!(short(&dir), [stdout, (4, Mark::Time), (4, Mark::Stream(Stream::Stderr))]);
}

#[test]
fn indexes_without_bytes_are_swept_away() {
    let (_home, dir) = place();
    Writer::open(&dir, keep_all(1 << 20)).unwrap().append(b"abc").unwrap();
    for first in [3, 77] {
        fs::write(dir.join(format!("{first:020}.idx")), "half a hea").unwrap();
    }
    fs::write(dir.join("stranger"), "").unwrap();
    Writer::open(&dir, keep_all(1 << 20)).unwrap();
    assert_eq!(files(&dir), ["00000000000000000000.idx", "00000000000000000000.log", "stranger"]);
}

#[test]
fn a_continued_log_knows_its_state() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(200)).unwrap();
    writer.mark(Mark::Resize(SIZE), 1).unwrap();
    writer.mark(Mark::Stream(Stream::Stderr), 2).unwrap();
    writer.append(b"x").unwrap();
    drop(writer);
    let mut writer = Writer::open(&dir, keep_all(200)).unwrap();
    let before = all(&dir).len();
    // Both are in force already.
    writer.mark(Mark::Resize(SIZE), 3).unwrap();
    writer.mark(Mark::Stream(Stream::Stderr), 4).unwrap();
    assert_eq!(all(&dir).len(), before);
    writer.append(&[b'x'; 300]).unwrap();
    writer.append(b"in the next segment").unwrap();
    let next: Vec<_> = short(&dir).into_iter().filter(|(offset, _)| *offset == 301).collect();
    assert_eq!(next, [(301, Mark::Stream(Stream::Stderr)), (301, Mark::Resize(SIZE))]);
}

#[test]
fn bytes_that_a_killed_writer_left_untimed_get_the_time_of_the_file() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"abc").unwrap();
    std::mem::forget(writer);
    let modified = dir.join(&files(&dir)[1]).metadata().unwrap().modified().unwrap();
    let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64;
    Writer::open(&dir, keep_all(1 << 20)).unwrap();
    let record = Record { offset: Offset(3), micros: modified, mark: Mark::Time };
    assert_eq!(all(&dir).last(), Some(&record));
}

#[test]
fn the_index_comes_with_the_first_byte_and_is_found_by_those_who_wait_for_it() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.mark(Mark::Resize(SIZE), 1).unwrap();
    writer.mark(Mark::Time, 2).unwrap();
    assert_eq!(files(&dir), ["00000000000000000000.log"]);
    let mut reader = Reader::open(&dir, Offset(0)).unwrap();
    let (mut buf, mut streams) = ([0; 9], Streams::new());
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::End);
    // A writer that died meanwhile changes nothing of that.
    drop(writer);
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    assert_eq!(files(&dir).len(), 1);
    writer.mark(Mark::Resize(SIZE), 3).unwrap();
    writer.mark(Mark::Stream(Stream::Stderr), 4).unwrap();
    writer.append(b"abc").unwrap();
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(0), len: 3 });
    assert_eq!(streams.split(&reader, Offset(0), 3).unwrap(), [(Stream::Stderr, 0..3)]);
    let found: Vec<Mark> = marks(&dir, Offset(0)..Offset(9)).unwrap().map(|r| r.unwrap().mark).collect();
    assert_eq!(found, [Mark::Stream(Stream::Stderr), Mark::Resize(SIZE)]);
}
