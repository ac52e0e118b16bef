//! Positions by time.

use std::time::{SystemTime, UNIX_EPOCH};

use wharf_log::{Mark, Writer, since};
use wharf_model::Offset;

use crate::support::{files, keep_all, place};

const MS: u64 = 1_000;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

#[test]
fn the_bytes_since_a_time() {
    // Later than now, when the log is made.
    let begin = now() + 3_600_000 * MS;
    // In one segment, and in many.
    for segment in [1 << 20, 150] {
        let (_home, dir) = place();
        let mut writer = Writer::open(&dir, keep_all(segment)).unwrap();
        writer.mark(Mark::Restart(1), begin).unwrap();
        for second in 1..=50 {
            writer.append(b"0123456789").unwrap();
            writer.tick(begin + second * 1000 * MS).unwrap();
        }
        assert_eq!(files(&dir).len() > 2, segment == 150);
        assert_eq!(since(&dir, 0).unwrap(), Offset(0));
        for second in 1..=50 {
            // Ten bytes came at each full second.
            assert_eq!(
                since(&dir, begin + second * 1000 * MS).unwrap(),
                Offset((second - 1) * 10),
                "at {second}"
            );
            assert_eq!(
                since(&dir, begin + second * 1000 * MS + 1).unwrap(),
                Offset(second * 10),
                "after {second}"
            );
        }
        assert_eq!(since(&dir, u64::MAX).unwrap(), writer.end());
    }
}

#[test]
fn bytes_without_a_time_are_old_if_the_file_is() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.append(b"nobody said when").unwrap();
    let now = now();
    assert_eq!(since(&dir, now + 1000 * MS).unwrap(), Offset(16));
    assert_eq!(since(&dir, now - 1000 * MS).unwrap(), Offset(0));
    assert_eq!(since(&dir, now).unwrap(), Offset(0));
}
