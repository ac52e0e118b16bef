//! The last lines.

use proptest::prelude::*;
use wharf_log::{Retention, Writer, lines_back};
use wharf_model::Offset;

use crate::support::{keep_all, place, read_all};

/// Where the last `n` lines start, the slow way.
fn naive(all: &[u8], n: usize) -> usize {
    let lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
    all.len() - lines.iter().rev().take(n).map(|line| line.len()).sum::<usize>()
}

proptest! {
    #[test]
    fn the_last_lines_start_where_one_would_count_them(
        all in prop::collection::vec(prop::sample::select(&b"\n\nab\0\xff"[..]), 0..500),
        segment in 1..300u64,
        chunk in 1..100usize,
        n in 0..60usize,
    ) {
        let (_home, dir) = place();
        let mut writer = Writer::open(&dir, keep_all(segment)).unwrap();
        for chunk in all.chunks(chunk) {
            writer.append(chunk).unwrap();
        }
        prop_assert_eq!(lines_back(&dir, n).unwrap(), Offset(naive(&all, n) as u64));
        prop_assert_eq!(lines_back(&dir, usize::MAX).unwrap(), Offset(0));
    }
}

#[test]
fn lines_longer_than_any_block() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(100_000)).unwrap();
    let line = vec![b'x'; 300_001];
    for _ in 0..3 {
        for chunk in line.chunks(7777) {
            writer.append(chunk).unwrap();
        }
        writer.append(b"\n").unwrap();
    }
    for n in 0..=3 {
        assert_eq!(lines_back(&dir, n).unwrap(), Offset((3 - n as u64) * 300_002));
    }
}

#[test]
fn where_too_few_are_kept_it_is_the_start() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, Retention { total: 1000, segment: 100 }).unwrap();
    for n in 0..1000 {
        writer.append(format!("line {n}\n").as_bytes()).unwrap();
    }
    assert_eq!(lines_back(&dir, 500).unwrap(), writer.start());
    let from = lines_back(&dir, 2).unwrap();
    assert_eq!(read_all(&dir, from.0).0, b"line 998\nline 999\n");
}
