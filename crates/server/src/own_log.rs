//! The daemon's own log on standard error, which may be a file on a disk without room.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lines that found no room since the last that did.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Takes every line. What cannot be written is counted, and the count is written before the next line that can: a log that
/// takes no more is no reason for anything else to fail.
pub(crate) struct OwnLog;

impl Write for OwnLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        put(&mut io::stderr().lock(), &DROPPED, line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn put(log: &mut impl Write, dropped: &AtomicU64, line: &[u8]) {
    let lost = dropped.load(Ordering::Relaxed);
    let told = lost == 0 || writeln!(log, "{lost} lines of this log found no room and are gone").is_ok();
    if told {
        dropped.store(0, Ordering::Relaxed);
    }
    if !told || log.write_all(line).is_err() {
        dropped.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with room or without.
    struct Disk(Vec<u8>, bool);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_found_no_room_is_counted_and_told() {
        let (mut disk, dropped) = (Disk(Vec::new(), false), AtomicU64::new(0));
        put(&mut disk, &dropped, b"one\n");
        disk.1 = true;
        put(&mut disk, &dropped, b"two\n");
        put(&mut disk, &dropped, b"three\n");
        disk.1 = false;
        put(&mut disk, &dropped, b"four\n");
        put(&mut disk, &dropped, b"five\n");
        let told = "one\n2 lines of this log found no room and are gone\nfour\nfive\n";
        assert_eq!(String::from_utf8(disk.0).unwrap(), told);
    }
}
