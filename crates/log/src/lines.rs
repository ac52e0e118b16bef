//! Finds where the last lines of a log start, by reading backwards.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use wharf_model::Offset;

use crate::files::{Files, MAX_LOOKS, RETRY_PAUSE, restless};
use crate::segment::Segment;

const BLOCK_LEN: usize = 64 << 10;

/// Where the last `n` lines of a log start.
///
/// A last line without a newline counts. Where fewer lines are kept it is the start of the log. It reads
/// backwards, and no further than it must.
pub fn lines_back(dir: &Path, n: usize) -> io::Result<Offset> {
    let dir = Files::open(dir)?;
    let mut block = Vec::new();
    'again: for _ in 0..MAX_LOOKS {
        let firsts = dir.segments()?;
        // The bytes between `start` and the end have been looked at.
        let mut start = None;
        let mut newlines = 0;
        let mut seen_any = false;
        for &first in firsts.iter().rev() {
            let Some(segment) = Segment::open(&dir, first)? else {
                // It was dropped, so what follows is now the start of the log.
                if let Some(start) = start {
                    return Ok(Offset(start));
                }
                std::thread::sleep(RETRY_PAUSE);
                continue 'again;
            };
            let mut end = segment.end()?;
            if start.is_none() && n == 0 {
                return Ok(Offset(end));
            }
            while end > first {
                let len = BLOCK_LEN.min((end - first) as usize);
                block.resize(len, 0);
                let from = end - len as u64;
                // Cut meanwhile, which a writer does not do: what is gone holds no line.
                let read = segment.log.read_at(&mut block, from - first)?;
                block.truncate(read);
                let mut unseen = &block[..];
                if !seen_any {
                    // The newline at the very end closes the last line, and starts none.
                    unseen = unseen.strip_suffix(b"\n").unwrap_or(unseen);
                    seen_any = true;
                }
                while let Some(at) = unseen.iter().rposition(|byte| *byte == b'\n') {
                    newlines += 1;
                    if newlines == n {
                        return Ok(Offset(from + at as u64 + 1));
                    }
                    unseen = &unseen[..at];
                }
                end = from;
            }
            start = Some(first);
        }
        return Ok(Offset(start.unwrap_or(0)));
    }
    Err(restless(dir.path()))
}
