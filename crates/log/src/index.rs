//! The index file of a segment: a header and records of 24 bytes each, little-endian.
//!
//! ```text
//! header  magic "WHARFIX1" | u64 first offset | u32 version | u32 0
//! record  u64 offset | u64 micros | u8 kind | u8 0 | u16 a | u16 b | u16 0
//! ```
//!
//! Offsets never fall within a file. A machine that crashed may leave records beyond the bytes, or half a record
//! at the end; the next writer cuts both off before it adds its own, and readers stop before either. Unknown
//! kinds are skipped, so that a later version may add some.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use wharf_model::{Offset, Size};

use crate::mark::{Mark, Record, Stream};

/// The length of the header and of each record.
pub(crate) const RECORD_LEN: usize = 24;

/// The most of an index that is read: many times what a writer puts into one.
const MAX_INDEX_LEN: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"WHARFIX1";
const VERSION: u32 = 1;

// 0 stays unused: it is what a hole in a file reads as.
const TIME: u8 = 1;
const STREAM: u8 = 2;
const RESIZE: u8 = 3;
const RESTART: u8 = 4;

/// The header of the index of the segment that starts at `first`.
pub(crate) fn header(first: u64) -> [u8; RECORD_LEN] {
    let mut bytes = [0; RECORD_LEN];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&first.to_le_bytes());
    bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// Whether the file is an index of that segment, in a version we know.
pub(crate) fn is_sound(file: &File, first: u64) -> io::Result<bool> {
    let mut bytes = [0; RECORD_LEN];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(bytes == header(first)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn encode(record: Record) -> [u8; RECORD_LEN] {
    let (kind, a, b) = match record.mark {
        Mark::Time => (TIME, 0, 0),
        Mark::Stream(Stream::Stdout) => (STREAM, 0, 0),
        Mark::Stream(Stream::Stderr) => (STREAM, 1, 0),
        Mark::Resize(size) => (RESIZE, size.cols, size.rows),
        Mark::Restart(run) => (RESTART, run as u16, (run >> 16) as u16),
    };
    let mut bytes = [0; RECORD_LEN];
    bytes[..8].copy_from_slice(&record.offset.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&record.micros.to_le_bytes());
    bytes[16] = kind;
    bytes[18..20].copy_from_slice(&u16::to_le_bytes(a));
    bytes[20..22].copy_from_slice(&u16::to_le_bytes(b));
    bytes
}

/// The record in these bytes; none where this version does not know its kind.
pub(crate) fn decode(bytes: &[u8; RECORD_LEN]) -> Option<Record> {
    let [o0, o1, o2, o3, o4, o5, o6, o7, m0, m1, m2, m3, m4, m5, m6, m7, kind, _, a0, a1, b0, b1, _, _] =
        *bytes;
    let (a, b) = (u16::from_le_bytes([a0, a1]), u16::from_le_bytes([b0, b1]));
    let mark = match (kind, a) {
        (TIME, _) => Mark::Time,
        (STREAM, 0) => Mark::Stream(Stream::Stdout),
        (STREAM, 1) => Mark::Stream(Stream::Stderr),
        (RESIZE, _) => Mark::Resize(Size { cols: a, rows: b }),
        (RESTART, _) => Mark::Restart(u32::from(a) | u32::from(b) << 16),
        _ => return None,
    };
    Some(Record {
        offset: Offset(u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7])),
        micros: u64::from_le_bytes([m0, m1, m2, m3, m4, m5, m6, m7]),
        mark,
    })
}

/// A place in an index file, which may still grow.
///
/// The file is handed to every call and not owned, because the reader of a segment holds it.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// Where in the file `block` was read from.
    at: u64,
    block: [u8; RECORD_LEN * 40],
    filled: usize,
    used: usize,
}

impl Cursor {
    /// The first record of an index.
    pub(crate) fn new() -> Self {
        Self { at: RECORD_LEN as u64, block: [0; RECORD_LEN * 40], filled: 0, used: 0 }
    }

    /// The next record, which stays the next; none at the end *for now*.
    pub(crate) fn peek(&mut self, file: &File) -> io::Result<Option<Record>> {
        loop {
            while let Some(bytes) = self.block[self.used..self.filled].first_chunk() {
                if let Some(record) = decode(bytes) {
                    return Ok(Some(record));
                }
                self.used += RECORD_LEN;
            }
            self.at += self.filled as u64;
            (self.used, self.filled) = (0, 0);
            if self.at >= MAX_INDEX_LEN {
                return Ok(None);
            }
            let read = file.read_at(&mut self.block, self.at)?;
            // Half a record at the end is either torn or about to become whole.
            self.filled = read - read % RECORD_LEN;
            if self.filled == 0 {
                return Ok(None);
            }
        }
    }

    /// Moves past the record that `peek` gave.
    pub(crate) fn advance(&mut self) {
        if self.used < self.filled {
            self.used += RECORD_LEN;
        }
    }

    /// Where in the file the next record stands.
    pub(crate) fn position(&self) -> u64 {
        self.at + self.used as u64
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let record = Record {
            offset: Offset(0x0102_0304_0506_0708),
            micros: 0x1112_1314_1516_1718,
            mark: Mark::Resize(Size { cols: 0x2122, rows: 0x3132 }),
        };
        let bytes = [
            8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 3, 0, 0x22, 0x21, 0x32,
            0x31, 0, 0,
        ];
        assert_eq!(encode(record), bytes);
        assert_eq!(&header(5)[..20], b"WHARFIX1\x05\0\0\0\0\0\0\0\x01\0\0\0");
    }

    #[test]
    fn every_mark_survives_the_file() {
        for mark in [
            Mark::Time,
            Mark::Stream(Stream::Stdout),
            Mark::Stream(Stream::Stderr),
            Mark::Resize(Size { cols: u16::MAX, rows: 1 }),
            Mark::Restart(u32::MAX - 7),
        ] {
            let record = Record { offset: Offset(u64::MAX), micros: 1, mark };
            assert_eq!(decode(&encode(record)), Some(record));
        }
    }

    #[test]
    fn a_cursor_skips_what_it_does_not_know_and_waits_for_the_rest() {
        let mut file = tempfile::tempfile().unwrap();
        let known = |n| Record { offset: Offset(n), micros: n, mark: Mark::Time };
        file.write_all(&header(0)).unwrap();
        file.write_all(&[0; RECORD_LEN]).unwrap();
        for n in 0..100 {
            file.write_all(&encode(known(n))).unwrap();
            let mut foreign = encode(known(n));
            foreign[16] = 200;
            file.write_all(&foreign).unwrap();
        }
        let last = encode(known(100));
        file.write_all(&last[..11]).unwrap();

        let mut cursor = Cursor::new();
        for n in 0..100 {
            assert_eq!(cursor.peek(&file).unwrap(), Some(known(n)));
            assert_eq!(cursor.peek(&file).unwrap(), Some(known(n)));
            cursor.advance();
        }
        assert_eq!(cursor.peek(&file).unwrap(), None);
        cursor.advance();
        file.write_all(&last[11..]).unwrap();
        assert_eq!(cursor.peek(&file).unwrap(), Some(known(100)));
        cursor.advance();
        assert_eq!(cursor.peek(&file).unwrap(), None);
        assert_eq!(cursor.position(), file.metadata().unwrap().len());
    }
}
