//! The end of a log: what is shown again when somebody comes back.

use std::io;
use std::path::Path;

use wharf_log::{Chunk, Reader};
use wharf_model::Offset;

/// How much is shown again.
const MAX_TAIL_LEN: u64 = 256 << 10;

/// Where to begin in a log that ends at `end`, and whether something before that is left out.
///
/// A log that is cut begins after a line feed, and so outside of sequences and characters.
pub(super) fn start(log: &Path, end: Offset) -> io::Result<(Offset, bool)> {
    let (first, _) = Reader::bounds(log)?;
    if end - first <= MAX_TAIL_LEN {
        return Ok((first, first.0 > 0));
    }
    let cut = Offset(end.0 - MAX_TAIL_LEN);
    let mut reader = Reader::open(log, cut)?;
    let mut buffer = vec![0; 16 << 10];
    loop {
        match reader.read(&mut buffer)? {
            Chunk::Data { offset, len } => {
                if offset >= end {
                    return Ok((cut, true));
                }
                if let Some(at) = buffer[..len].iter().position(|&byte| byte == b'\n') {
                    return Ok((offset + (at as u64 + 1), true));
                }
            }
            Chunk::Gap { .. } => {}
            Chunk::End => return Ok((cut, true)),
        }
    }
}

/// Reads from an offset to an end, piece by piece.
pub(super) fn read(
    log: &Path,
    from: Offset,
    until: Option<Offset>,
    mut piece: impl FnMut(Offset, bool, &[u8]),
) -> io::Result<()> {
    let mut reader = Reader::open(log, from)?;
    let mut streams = wharf_log::Streams::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer)? {
            Chunk::Data { offset, len } => {
                let len = until.map_or(len, |until| len.min((until - offset) as usize));
                if len == 0 {
                    return Ok(());
                }
                for (stream, range) in streams.split(&reader, offset, len)? {
                    let at = offset + range.start as u64;
                    piece(at, stream == wharf_log::Stream::Stderr, &buffer[range]);
                }
            }
            Chunk::Gap { .. } => {}
            Chunk::End => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_log::{Retention, Writer};

    use super::*;

    fn log(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("log");
        Writer::open(&dir, Retention::default()).unwrap().append(bytes).unwrap();
        (root, dir)
    }

    #[test]
    fn a_short_log_is_shown_whole() {
        let (_root, dir) = log(b"hello\nthere");
        assert_eq!(start(&dir, Offset(11)).unwrap(), (Offset(0), false));
        let mut seen = Vec::new();
        read(&dir, Offset(0), None, |_, _, bytes| seen.extend_from_slice(bytes)).unwrap();
        assert_eq!(seen, b"hello\nthere");
    }

    #[test]
    fn a_long_log_is_cut_after_a_line() {
        let line = b"0123456789abcdef\n";
        let (_root, dir) = log(&line.repeat(40_000));
        let end = Offset(40_000 * 17);
        let (from, cut) = start(&dir, end).unwrap();
        assert!(
            cut && from.0 % 17 == 0 && end - from <= MAX_TAIL_LEN && end - from > MAX_TAIL_LEN - 17,
            "{from:?}"
        );
    }

    #[test]
    fn a_log_without_lines_is_cut_anywhere() {
        let (_root, dir) = log(&vec![b'x'; 300 << 10]);
        assert_eq!(start(&dir, Offset(300 << 10)).unwrap(), (Offset(44 << 10), true));
    }
}
