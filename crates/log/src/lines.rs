use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use wharf_model::Offset;

use crate::segment::{Directory, Segment};

const BLOCK: usize = 64 << 10;

/// Where the last `n` lines of a log start.
///
/// A last line without a newline counts. Where fewer lines are kept it is the start of the log. It reads
/// backwards, and no further than it must.
pub fn lines_back(dir: &Path, n: usize) -> io::Result<Offset> {
    let dir = Directory::at(dir)?;
    let mut block = Vec::new();
    'again: loop {
        let firsts = dir.segments()?;
        // The bytes between `start` and the end have been looked at.
        let mut start = None;
        let mut newlines = 0;
        let mut seen_any = false;
        for &first in firsts.iter().rev() {
            let Some(segment) = Segment::open(&dir, first)? else {
                match start {
                    // It was dropped, so what follows is now the start of the log.
                    Some(start) => return Ok(Offset(start)),
                    None => continue 'again,
                }
            };
            let mut end = segment.end()?;
            if start.is_none() && n == 0 {
                return Ok(Offset(end));
            }
            while end > first {
                let len = BLOCK.min((end - first) as usize);
                block.resize(len, 0);
                let from = end - len as u64;
                segment.log.read_exact_at(&mut block, from - first)?;
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
}
