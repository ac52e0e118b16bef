//! What is written is what is read.

use proptest::prelude::*;
use wharf_log::{Chunk, Reader, Writer};
use wharf_model::Offset;

use crate::support::{keep_all, place, read_all};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_in_any_chunks_come_back(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40),
        segment in 1..2000u64,
        reopen in 1..10usize,
    ) {
        let (_home, dir) = place();
        let mut writer = Writer::open(&dir, keep_all(segment)).unwrap();
        for (n, chunk) in chunks.iter().enumerate() {
            if n % reopen == 0 {
                drop(writer);
                writer = Writer::open(&dir, keep_all(segment)).unwrap();
            }
            writer.append(chunk).unwrap();
        }
        let all = chunks.concat();
        prop_assert_eq!(writer.start(), Offset(0));
        prop_assert_eq!(writer.end(), Offset(all.len() as u64));
        prop_assert_eq!(Reader::bounds(&dir).unwrap(), (writer.start(), writer.end()));
        for from in [0, all.len() / 3, all.len()] {
            prop_assert_eq!(read_all(&dir, from as u64), (all[from..].to_vec(), vec![]));
            let mut found = Vec::new();
            let mut buf = [0; 100];
            loop {
                let at = Offset((from + found.len()) as u64);
                prop_assert_eq!(writer.kept_from(at), at);
                match writer.read_at(at, &mut buf).unwrap() {
                    0 => break,
                    len => found.extend_from_slice(&buf[..len]),
                }
            }
            prop_assert_eq!(&found, &all[from..]);
        }
    }
}

#[test]
fn no_byte_is_special() {
    let (_home, dir) = place();
    let all: Vec<u8> = (0..=255).chain(*b"\0\0\xff\xfe\xc3\x28\xed\xa0\x80\r\n\x1b[2J").collect();
    Writer::open(&dir, keep_all(1 << 20)).unwrap().append(&all).unwrap();
    assert_eq!(read_all(&dir, 0).0, all);
}

#[test]
fn a_position_beyond_the_end_waits_until_the_log_gets_there() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(4)).unwrap();
    let mut reader = Reader::open(&dir, Offset(10)).unwrap();
    let mut buf = [0; 64];
    for word in ["0123", "4567", "89"] {
        assert_eq!(reader.read(&mut buf).unwrap(), Chunk::End);
        writer.append(word.as_bytes()).unwrap();
    }
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::End);
    writer.append(b"abc").unwrap();
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(10), len: 3 });
    assert_eq!(&buf[..3], b"abc");
    assert_eq!(writer.read_at(Offset(99), &mut buf).unwrap(), 0);
}

#[test]
fn a_log_that_is_not_there_is_an_error_that_names_it() {
    let (_home, dir) = place();
    let error = Reader::open(&dir, Offset(0)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}");
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(read_all(&dir, 0), (vec![], vec![]));
    assert_eq!(Reader::bounds(&dir).unwrap(), (Offset(0), Offset(0)));
}

#[test]
fn what_is_removed_while_open_is_read_to_its_end() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"first second").unwrap();
    let mut reader = Reader::open(&dir, Offset(0)).unwrap();
    let mut buf = [0; 6];
    reader.read(&mut buf).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(6), len: 6 });
    assert_eq!(&buf, b"second");
    assert_eq!(reader.read(&mut buf).unwrap(), Chunk::End);
}
