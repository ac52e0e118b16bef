//! Readers beside a writer that starts and drops segments as fast as it can.

use std::sync::atomic::{AtomicBool, Ordering};

use wharf_log::{Chunk, Mark, Reader, Retention, Stream, Streams, Writer, lines_back, marks, since};
use wharf_model::Offset;

use crate::support::{Deadline, Numbers, pattern, place};

const TOTAL: u64 = 100_000;

/// Writes, with or without losses of its own, while readers check every byte. Returns the bytes in gaps.
fn race(retention: Retention, skips: bool) -> u64 {
    let (_home, dir) = place();
    let done = AtomicBool::new(false);
    let mut writer = Writer::open(&dir, retention).unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3u64)
            .map(|n| {
                let (dir, done) = (&dir, &done);
                scope.spawn(move || follow(dir, done, 1 + n as usize * 50))
            })
            .collect();
        let asking = scope.spawn(|| {
            // Those who ask meanwhile get answers that make sense.
            let mut last = Offset(0);
            while !done.load(Ordering::Acquire) {
                let (start, end) = Reader::bounds(&dir).unwrap();
                assert!(start <= end && last <= end, "{start} {last} {end}");
                last = end;
                lines_back(&dir, 3).unwrap();
                since(&dir, 5).unwrap();
                let records: Vec<_> = marks(&dir, start..end).unwrap().map(Result::unwrap).collect();
                assert!(records.is_sorted_by_key(|record| record.offset));
            }
        });
        let mut numbers = Numbers(retention.total);
        let mut at = 0;
        while at < TOTAL {
            let len = 1 + numbers.below(90);
            if skips && numbers.below(10) == 0 {
                writer.skip(len);
            } else {
                // Which stream a byte came on can be told from its offset, roughly.
                let stream = if at / 1000 % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
                writer.mark(Mark::Stream(stream), at).unwrap();
                let chunk: Vec<u8> = (at..at + len).map(pattern).collect();
                writer.append(&chunk).unwrap();
                writer.tick(at).unwrap();
            }
            at += len;
        }
        done.store(true, Ordering::Release);
        asking.join().unwrap();
        let results: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        for (end, _) in &results {
            assert_eq!(*end, writer.end());
        }
        results.iter().map(|(_, gone)| gone).sum()
    })
}

fn follow(dir: &std::path::Path, done: &AtomicBool, buf: usize) -> (Offset, u64) {
    let deadline = Deadline::new();
    let mut reader = Reader::open(dir, Offset(0)).unwrap();
    let mut streams = Streams::new();
    let (mut at, mut gone) = (Offset(0), 0);
    let mut buf = vec![0; buf];
    loop {
        deadline.left("the end of the log");
        let last = done.load(Ordering::Acquire);
        match reader.read(&mut buf).unwrap() {
            Chunk::Data { offset, len } => {
                assert_eq!(offset, at);
                for (at, byte) in (offset.0..).zip(&buf[..len]) {
                    assert_eq!(*byte, pattern(at), "at {at}");
                }
                at = at + len as u64;
                let mut covered = 0;
                for (stream, range) in streams.split(&reader, offset, len).unwrap() {
                    assert_eq!(range.start, covered);
                    covered = range.end;
                    for place in (offset.0 + range.start as u64)..(offset.0 + range.end as u64) {
                        // The first chunk after a full thousand may start before it.
                        if place % 1000 >= 90 {
                            assert_eq!(stream == Stream::Stderr, place / 1000 % 2 == 1, "at {place}");
                        }
                    }
                }
                assert_eq!(covered, len);
            }
            Chunk::Gap { from, to } => {
                assert_eq!(from, at);
                assert!(from < to);
                gone += to - from;
                at = to;
            }
            Chunk::End if last => return (at, gone),
            Chunk::End => std::thread::yield_now(),
        }
    }
}

#[test]
fn rotation_alone_never_looks_like_a_gap() {
    assert_eq!(race(Retention { total: u64::MAX, segment: 400 }, false), 0);
}

#[test]
fn retention_takes_only_what_is_told() {
    race(Retention { total: 4000, segment: 200 }, false);
}

#[test]
fn losses_and_retention_together() {
    assert!(race(Retention { total: 20_000, segment: 500 }, true) > 0);
}
