//! Splits what was read into standard output and standard error.

use std::io;
use std::ops::Range;

use wharf_model::Offset;

use crate::index::Cursor;
use crate::mark::{Mark, Stream};
use crate::reader::Reader;

/// Splits what a [`Reader`] reads by the stream that it came on.
#[derive(Debug, Default)]
pub struct Streams {
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    segment: u64,
    cursor: Cursor,
    stream: Stream,
    /// The end of the last chunk: marks before it are behind the cursor.
    reached: u64,
}

impl Streams {
    /// Starts anywhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// The streams of a chunk that this reader has just given, as ranges of its buffer, in order and without holes.
    pub fn split(
        &mut self,
        reader: &Reader,
        offset: Offset,
        len: usize,
    ) -> io::Result<Vec<(Stream, Range<usize>)>> {
        let mut pieces = Vec::new();
        let Some(segment) = reader.segment() else {
            pieces.push((Stream::default(), 0..len));
            return Ok(pieces);
        };
        let fresh = || Place {
            segment: segment.first,
            cursor: Cursor::new(),
            stream: Stream::default(),
            reached: segment.first,
        };
        let place = self.place.get_or_insert_with(fresh);
        if place.segment != segment.first || offset.0 < place.reached {
            *place = fresh();
        }
        let end = offset.0 + len as u64;
        place.reached = end;
        let mut from = 0;
        if let Some(index) = &segment.index {
            // Marks are written before their bytes: those of this chunk are all there.
            while let Some(record) = place.cursor.peek(index)?.filter(|record| record.offset.0 < end) {
                place.cursor.advance();
                let Mark::Stream(stream) = record.mark else { continue };
                let at = (record.offset - offset) as usize;
                if stream != place.stream && at > from {
                    pieces.push((place.stream, from..at));
                    from = at;
                }
                place.stream = stream;
            }
        }
        pieces.push((place.stream, from..len));
        Ok(pieces)
    }
}
