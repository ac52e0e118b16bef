//! Marks, and what can be told from them.

use proptest::prelude::*;
use wharf_log::{Chunk, Mark, Reader, Stream, Streams, Writer, marks};
use wharf_model::{Offset, Size};

use crate::support::{keep_all, place};

const MS: u64 = 1_000;

fn times(dir: &std::path::Path) -> Vec<(u64, u64)> {
    let all = marks(dir, Offset(0)..Offset(u64::MAX)).unwrap().map(Result::unwrap);
    all.filter(|record| record.mark == Mark::Time).map(|record| (record.offset.0, record.micros)).collect()
}

/// A writer whose last record is from time 0.
fn at_zero(dir: &std::path::Path, segment: u64) -> Writer {
    let mut writer = Writer::open(dir, keep_all(segment)).unwrap();
    writer.mark(Mark::Restart(1), 0).unwrap();
    writer
}

#[test]
fn ticks_are_at_least_five_milliseconds_apart() {
    let (_home, dir) = place();
    let mut writer = at_zero(&dir, 1 << 20);
    for now in 1..=20 {
        writer.append(b"x").unwrap();
        writer.tick(now * MS).unwrap();
        writer.tick(now * MS).unwrap();
    }
    assert_eq!(times(&dir), [(5, 5 * MS), (10, 10 * MS), (15, 15 * MS), (20, 20 * MS)]);
}

#[test]
fn a_tick_without_new_bytes_says_nothing() {
    let (_home, dir) = place();
    let mut writer = at_zero(&dir, 1 << 20);
    writer.tick(50 * MS).unwrap();
    assert_eq!(times(&dir), []);
}

#[test]
fn the_end_of_a_burst_keeps_its_time_through_a_pause() {
    let (_home, dir) = place();
    let mut writer = at_zero(&dir, 1 << 20);
    writer.append(b"a").unwrap();
    writer.tick(10 * MS).unwrap();
    writer.append(b"b").unwrap();
    writer.tick(12 * MS).unwrap();
    // An hour later.
    writer.append(b"c").unwrap();
    writer.tick(3_600_000 * MS).unwrap();
    assert_eq!(times(&dir), [(1, 10 * MS), (2, 12 * MS), (3, 3_600_000 * MS)]);

    // Without new bytes, with a mark, at a new segment, and at the end it is the same.
    writer.append(b"d").unwrap();
    writer.tick(3_600_001 * MS).unwrap();
    writer.tick(3_700_000 * MS).unwrap();
    assert_eq!(times(&dir).last(), Some(&(4, 3_600_001 * MS)));
    writer.append(b"e").unwrap();
    writer.tick(3_600_002 * MS).unwrap();
    writer.mark(Mark::Stream(Stream::Stderr), 3_800_000 * MS).unwrap();
    assert_eq!(times(&dir).last(), Some(&(5, 3_600_002 * MS)));
    writer.append(b"f").unwrap();
    writer.tick(3_800_001 * MS).unwrap();
    drop(writer);
    assert_eq!(times(&dir).last(), Some(&(6, 3_800_001 * MS)));
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_the_ticks() {
    let (_home, dir) = place();
    let mut writer = at_zero(&dir, 1 << 20);
    for now in [100, 200, 50, 60] {
        writer.append(b"x").unwrap();
        writer.tick(now * MS).unwrap();
    }
    assert_eq!(times(&dir), [(1, 100 * MS), (2, 200 * MS), (3, 50 * MS), (4, 60 * MS)]);
}

#[test]
fn a_range_begins_with_what_is_in_force() {
    let (_home, dir) = place();
    let mut writer = at_zero(&dir, 1 << 20);
    let size = |cols| Mark::Resize(Size { cols, rows: 5 });
    for (n, cols) in (1..=5).enumerate() {
        writer.mark(size(cols), n as u64).unwrap();
        writer.append(b"0123456789").unwrap();
    }
    let range = |from, to| -> Vec<_> {
        let found = marks(&dir, Offset(from)..Offset(to)).unwrap().map(Result::unwrap);
        found.map(|record| (record.offset.0, record.mark)).collect()
    };
    let stdout = (0, Mark::Stream(Stream::Stdout));
    assert_eq!(range(25, 40), [stdout, (20, size(3)), (30, size(4))]);
    assert_eq!(range(30, 31), [stdout, (20, size(3)), (30, size(4))]);
    assert_eq!(range(0, 1), [stdout, (0, size(1)), (0, Mark::Restart(1))]);
    assert_eq!(range(99, 200), [stdout, (40, size(5))]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_byte_is_on_the_stream_it_came_on(
        writes in prop::collection::vec((any::<bool>(), 0..50usize), 1..60),
        segment in 60..2000u64,
        buf in 1..200usize,
    ) {
        let (_home, dir) = place();
        let mut writer = Writer::open(&dir, keep_all(segment)).unwrap();
        // The reader follows on the heels of the writer.
        let mut reader = Reader::open(&dir, Offset(0)).unwrap();
        let mut streams = Streams::new();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        let mut buf = vec![0; buf];
        for (n, (stderr, len)) in writes.iter().enumerate() {
            let stream = if *stderr { Stream::Stderr } else { Stream::Stdout };
            writer.mark(Mark::Stream(stream), n as u64).unwrap();
            writer.append(&vec![b'x'; *len]).unwrap();
            expected.extend(vec![stream; *len]);
            if n % 3 == 0 {
                continue;
            }
            while let Chunk::Data { offset, len } = reader.read(&mut buf).unwrap() {
                prop_assert_eq!(offset.0, found.len() as u64);
                let pieces = streams.split(&reader, offset, len).unwrap();
                // Asking again gives the same.
                prop_assert_eq!(&Streams::new().split(&reader, offset, len).unwrap(), &pieces);
                prop_assert_eq!(&streams.split(&reader, offset, len).unwrap(), &pieces);
                for (stream, range) in pieces {
                    prop_assert_eq!(range.start, found.len() - offset.0 as usize);
                    found.extend(vec![stream; range.len()]);
                }
            }
        }
        prop_assert_eq!(&found, &expected[..found.len()]);
    }
}
