//! How much is kept.

use wharf_log::{Mark, Reader, Retention, Stream, Writer};
use wharf_model::Offset;

use crate::support::{files, pattern, place, read_all};

/// What an index holds that has nothing but its header and the stream.
const EMPTY_INDEX_LEN: u64 = 48;

fn chunk(from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(pattern).collect()
}

#[test]
fn exactly_the_newest_whole_segments_are_kept() {
    let (_home, dir) = place();
    // Segments of two chunks of 50 bytes with their index; there is room for four, and a little.
    let full = 100 + EMPTY_INDEX_LEN;
    let mut writer = Writer::open(&dir, Retention { total: 4 * full + 60, segment: full }).unwrap();
    for n in 0..100 {
        writer.append(&chunk(n * 50, 50)).unwrap();
        let end = (n + 1) * 50;
        let current = (end - 1) / 100;
        // A full current one leaves room for three more; one half full, too: 50 + 48 is more than 60.
        let oldest = current.saturating_sub(3);
        let expected: Vec<_> = (oldest..=current)
            .flat_map(|segment| ["idx", "log"].map(|kind| format!("{:020}.{kind}", segment * 100)))
            .collect();
        assert_eq!(files(&dir), expected, "at {end}");
        assert_eq!((writer.start(), writer.end()), (Offset(oldest * 100), Offset(end)));
        assert_eq!(Reader::bounds(&dir).unwrap(), (writer.start(), writer.end()));
    }
    let start = writer.start().0;
    assert_eq!(read_all(&dir, 0), (chunk(start, 5000 - start), vec![(0, start)]));
    assert_eq!(read_all(&dir, start), (chunk(start, 5000 - start), vec![]));
    let mut buf = [0; 10];
    assert_eq!(writer.read_at(Offset(start - 1), &mut buf).unwrap(), 0);
    assert_eq!(writer.kept_from(Offset(start - 1)), Offset(start));
    assert_eq!(writer.read_at(Offset(start), &mut buf).unwrap(), 10);
    assert_eq!(buf[..], chunk(start, 10));
}

#[test]
fn the_current_segment_is_never_dropped() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, Retention { total: 10, segment: 1000 }).unwrap();
    writer.append(&chunk(0, 900)).unwrap();
    assert_eq!(read_all(&dir, 0), (chunk(0, 900), vec![]));
    writer.append(&chunk(900, 900)).unwrap();
    writer.append(&chunk(1800, 1)).unwrap();
    assert_eq!(read_all(&dir, 0), (chunk(1800, 1), vec![(0, 1800)]));
}

#[test]
fn the_index_counts() {
    let (_home, dir) = place();
    let retention = Retention { total: 4000, segment: 1000 };
    let mut writer = Writer::open(&dir, retention).unwrap();
    for n in 0..5000 {
        writer.mark(Mark::Stream([Stream::Stdout, Stream::Stderr][n % 2]), 1).unwrap();
        writer.append(b"x").unwrap();
        let size: u64 = files(&dir).iter().map(|name| dir.join(name).metadata().unwrap().len()).sum();
        assert!(size <= retention.total, "{size}");
    }
}

#[test]
fn a_smaller_retention_applies_when_the_log_is_opened_again() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, Retention { total: 1 << 20, segment: 100 }).unwrap();
    for n in 0..50 {
        writer.append(&chunk(n * 100, 100)).unwrap();
    }
    drop(writer);
    // The new writer adds the time of the last bytes, which nobody had told.
    let writer =
        Writer::open(&dir, Retention { total: 3 * (100 + EMPTY_INDEX_LEN) + 24, segment: 100 }).unwrap();
    assert_eq!((writer.start(), writer.end()), (Offset(4700), Offset(5000)));
    assert_eq!(files(&dir).len(), 6);
}
