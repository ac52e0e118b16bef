//! Finds the offset at which the output after a moment starts.

use std::io;
use std::path::Path;

use wharf_model::Offset;

use crate::files::Files;
use crate::index::Cursor;
use crate::segment::Segment;

/// By how much the time of change of a file may lag behind the clock.
const LAG_MICROS: u64 = 20_000;

/// Where the bytes start that came at or after a time, in microseconds since the Unix epoch.
///
/// The index is exact to some milliseconds; in doubt the answer is the earlier position.
pub fn since(dir: &Path, micros: u64) -> io::Result<Offset> {
    let dir = Files::open(dir)?;
    let firsts = dir.segments()?;
    let newest = firsts.last().copied();
    let mut start = newest.unwrap_or(0);
    for first in firsts.into_iter().rev() {
        // Dropped meanwhile: what follows is now the start.
        let Some(segment) = Segment::open(&dir, first)? else { break };
        if let Some(offset) = since_in(&segment, micros, newest == Some(first))? {
            return Ok(Offset(offset));
        }
        start = first;
    }
    Ok(Offset(start))
}

/// The place in this segment; none if it begins too late to tell.
fn since_in(segment: &Segment, micros: u64, newest: bool) -> io::Result<Option<u64>> {
    let Some(index) = &segment.index else { return Ok(None) };
    let mut cursor = Cursor::new();
    let mut found = None;
    while let Some(record) = cursor.peek(index)? {
        if record.micros >= micros {
            return Ok(found);
        }
        found = Some(record.offset.0);
        cursor.advance();
    }
    let end = segment.end()?;
    // Bytes after the last record: the file system knows when the last of them came.
    if newest && segment.modified()?.saturating_add(LAG_MICROS) < micros {
        return Ok(Some(end));
    }
    Ok(found.map(|offset| offset.min(end)))
}
