//! Iterates over the index records that bear on a range of the log.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::Path;

use wharf_model::Offset;

use crate::files::Files;
use crate::index::Cursor;
use crate::mark::{Mark, Record};
use crate::segment::Segment;

/// The records of the index that bear on a range of the log.
///
/// First come the stream, the size and the time in force where the range begins, with the offsets at which they
/// were set; then each record in the range. A new segment repeats the stream and the size.
pub fn marks(dir: &Path, range: Range<Offset>) -> io::Result<Marks> {
    let dir = Files::open(dir)?;
    let mut segments: VecDeque<u64> = dir.segments()?.into();
    let holds = segments.partition_point(|first| *first <= range.start.0).saturating_sub(1);
    segments.drain(..holds);
    let mut marks = Marks { dir, range, segments, open: None, in_force: VecDeque::new() };
    marks.gather()?;
    Ok(marks)
}

/// See [`marks`].
#[derive(Debug)]
pub struct Marks {
    dir: Files,
    range: Range<Offset>,
    segments: VecDeque<u64>,
    open: Option<(Segment, Cursor)>,
    in_force: VecDeque<Record>,
}

impl Marks {
    /// Takes the records before the range, and keeps the last of each kind.
    fn gather(&mut self) -> io::Result<()> {
        let (mut stream, mut size, mut time) = (None, None, None);
        while let Some(record) = self.peek()?.filter(|record| record.offset < self.range.start) {
            self.advance();
            match record.mark {
                Mark::Stream(_) => stream = Some(record),
                Mark::Resize(_) => size = Some(record),
                Mark::Time => time = Some(record),
                Mark::Restart(_) => {}
            }
        }
        self.in_force.extend([stream, size, time].into_iter().flatten());
        self.in_force.make_contiguous().sort_by_key(|record| record.offset);
        Ok(())
    }

    fn peek(&mut self) -> io::Result<Option<Record>> {
        loop {
            if let Some((segment, cursor)) = &mut self.open
                && let Some(index) = &segment.index
                && let Some(record) = cursor.peek(index)?
            {
                return Ok(Some(record));
            }
            // A segment that was dropped meanwhile has no marks to give.
            let Some(first) = self.segments.pop_front() else { return Ok(None) };
            if Offset(first) >= self.range.end {
                return Ok(None);
            }
            self.open = Segment::open(&self.dir, first)?.map(|segment| (segment, Cursor::new()));
        }
    }

    fn advance(&mut self) {
        if let Some((_, cursor)) = &mut self.open {
            cursor.advance();
        }
    }
}

impl Iterator for Marks {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.in_force.pop_front() {
            return Some(Ok(record));
        }
        let record = match self.peek() {
            Ok(record) => record.filter(|record| record.offset < self.range.end)?,
            Err(error) => {
                // Once: whoever goes on after an error shall not go on for ever.
                self.segments.clear();
                self.open = None;
                return Some(Err(error));
            }
        };
        self.advance();
        Some(Ok(record))
    }
}
