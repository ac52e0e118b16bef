//! Reads a log from an offset on, across segments, and reports gaps.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use wharf_model::Offset;

use crate::files::{Files, MAX_LOOKS, MAX_SEGMENT_LEN, RETRY_PAUSE, restless};
use crate::segment::{Segment, log_name};

/// How long a directory must have been quiet before its time of change is taken for a proof that nothing
/// changed. File systems count that time in steps of up to two seconds.
const MIN_QUIET_TIME: Duration = Duration::from_secs(3);

/// How many empty segments in a row are gone through by one read.
const MAX_EMPTY_SEGMENTS: u32 = 1_000;

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// The first `len` bytes of the buffer are those from `offset` on.
    Data {
        /// Where they stand in the log.
        offset: Offset,
        /// How many they are; never 0, and never from two segments.
        len: usize,
    },
    /// The bytes in `from..to` are gone: dropped by retention, or lost when the disk was full.
    ///
    /// Told once; reading goes on at `to`.
    Gap {
        /// The first byte that is gone.
        from: Offset,
        /// The first byte that is there again.
        to: Offset,
    },
    /// There is nothing more for now.
    End,
}

/// A position in a log, and the means to read on from it.
///
/// Correct whatever the writer does meanwhile: add, start new segments, drop old ones, or die. A segment that
/// is dropped while it is being read is read to its end.
#[derive(Debug)]
pub struct Reader {
    dir: Files,
    position: u64,
    segment: Option<Segment>,
    listing: Listing,
}

impl Reader {
    /// Opens the log in `dir` at a position, which may lie before its start (a gap) or beyond its end.
    pub fn open(dir: &Path, from: Offset) -> io::Result<Self> {
        let dir = Files::open(dir)?;
        Ok(Self { dir, position: from.0, segment: None, listing: Listing::default() })
    }

    /// The first and the last position of a log: what is kept of it.
    pub fn bounds(dir: &Path) -> io::Result<(Offset, Offset)> {
        let dir = Files::open(dir)?;
        for _ in 0..MAX_LOOKS {
            let firsts = dir.segments()?;
            let (Some(&start), Some(&last)) = (firsts.first(), firsts.last()) else {
                return Ok((Offset(0), Offset(0)));
            };
            if let Some(segment) = Segment::open(&dir, last)? {
                return Ok((Offset(start), Offset(segment.end()?)));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
        Err(restless(dir.path()))
    }

    /// Whether nothing was ever written: the first segment is there, and empty. One look at one file, for those
    /// who have many logs to look at.
    pub fn is_unwritten(dir: &Path) -> bool {
        let first = wharf_boundary::open_log(dir).and_then(|dir| dir.file_len(log_name(0)));
        first.is_ok_and(|len| len == 0)
    }

    /// Where the next read begins.
    pub fn position(&self) -> Offset {
        Offset(self.position)
    }

    /// Reads on.
    ///
    /// At the end this costs two system calls; to be woken when there is more, use a
    /// [`Follower`](crate::Follower).
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<Chunk> {
        if buf.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "cannot read a log into an empty buffer",
            ));
        }
        // A writer leaves no empty segments behind; whoever does shall not have us walk through them for ever.
        for _ in 0..MAX_EMPTY_SEGMENTS {
            if let Some(chunk) = self.read_segment(buf)? {
                return Ok(chunk);
            }
            if let Some(chunk) = self.read_beyond(buf)? {
                return Ok(chunk);
            }
        }
        Err(restless(self.dir.path()))
    }

    /// Goes on after the segment seemed to end; none if it is now at the beginning of another.
    fn read_beyond(&mut self, buf: &mut [u8]) -> io::Result<Option<Chunk>> {
        let Some(next) = self.next_segment()? else { return Ok(Some(Chunk::End)) };
        // Only now, with a later segment in hand, is the end of this one final.
        if let Some(chunk) = self.read_segment(buf)? {
            return Ok(Some(chunk));
        }
        let (from, to) = (self.position, next.first);
        self.segment = Some(next);
        if from >= to {
            return Ok(None);
        }
        self.position = to;
        Ok(Some(Chunk::Gap { from: Offset(from), to: Offset(to) }))
    }

    /// The segment that the last data came from.
    pub(crate) fn segment(&self) -> Option<&Segment> {
        self.segment.as_ref()
    }

    fn read_segment(&mut self, buf: &mut [u8]) -> io::Result<Option<Chunk>> {
        let Some(segment) = &mut self.segment else { return Ok(None) };
        let place = self.position - segment.first;
        let most = MAX_SEGMENT_LEN.saturating_sub(place).min(buf.len() as u64) as usize;
        let len = if most == 0 { 0 } else { segment.log.read_at(&mut buf[..most], place)? };
        if len == 0 {
            return Ok(None);
        }
        segment.find_index(&self.dir)?;
        let offset = Offset(self.position);
        self.position += len as u64;
        Ok(Some(Chunk::Data { offset, len }))
    }

    /// The segment to go on with: the one that holds the position or, if it is in none, the next.
    fn next_segment(&mut self) -> io::Result<Option<Segment>> {
        self.listing.refresh(&self.dir)?;
        for _ in 0..MAX_LOOKS {
            let Some(first) = self.listing.after(self.segment.as_ref().map(|s| s.first), self.position)
            else {
                return Ok(None);
            };
            if let Some(segment) = Segment::open(&self.dir, first)? {
                return Ok(Some(segment));
            }
            // Dropped since we looked.
            self.listing.reload(&self.dir)?;
        }
        Err(restless(self.dir.path()))
    }
}

/// The segments that a log had when we last looked.
#[derive(Debug, Default)]
struct Listing {
    firsts: Vec<u64>,
    /// The directory's time of change, if the listing is good for as long as that stays the same.
    settled: Option<SystemTime>,
}

impl Listing {
    /// Looks again if something may have changed. A reader that waits at the end asks often, so this is cheap.
    fn refresh(&mut self, dir: &Files) -> io::Result<()> {
        match dir.modified() {
            Ok(modified) if self.settled == Some(modified) => Ok(()),
            Ok(_) => self.reload(dir),
            Err(error) => self.gone(error),
        }
    }

    fn reload(&mut self, dir: &Files) -> io::Result<()> {
        self.settled = None;
        match dir.modified().and_then(|modified| Ok((modified, dir.segments()?))) {
            Ok((modified, firsts)) => {
                self.firsts = firsts;
                let quiet = SystemTime::now().duration_since(modified);
                self.settled = quiet.is_ok_and(|quiet| quiet > MIN_QUIET_TIME).then_some(modified);
                Ok(())
            }
            Err(error) => self.gone(error),
        }
    }

    /// A log that was removed altogether has no more segments; what is open can still be read.
    fn gone(&mut self, error: io::Error) -> io::Result<()> {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        self.settled = None;
        self.firsts.clear();
        Ok(())
    }

    /// The last segment that starts at or before the position, if it comes after the current one; else the first
    /// one that does.
    fn after(&self, current: Option<u64>, position: u64) -> Option<u64> {
        let later = |first: u64| current.is_none_or(|current| first > current);
        let beyond = self.firsts.partition_point(|first| *first <= position);
        let holds = self.firsts[..beyond].last().copied().filter(|first| later(*first));
        holds.or_else(|| self.firsts[beyond..].iter().copied().find(|first| later(*first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Retention, Writer};

    #[test]
    fn bytes_that_came_between_the_end_and_the_next_segment_are_read() {
        let home = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(home.path(), Retention { total: u64::MAX, segment: 60 }).unwrap();
        let mut reader = Reader::open(home.path(), Offset(0)).unwrap();
        let mut buf = [0; 99];
        writer.append(b"a").unwrap();
        assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(0), len: 1 });
        assert_eq!(reader.read_segment(&mut buf).unwrap(), None);
        // Just now the segment gets its last bytes, and a successor.
        writer.append(b"0123456789012").unwrap();
        writer.append(b"b").unwrap();
        assert_eq!(reader.read_beyond(&mut buf).unwrap(), Some(Chunk::Data { offset: Offset(1), len: 13 }));
        assert_eq!(reader.read(&mut buf).unwrap(), Chunk::Data { offset: Offset(14), len: 1 });
        assert_eq!(reader.segment.unwrap().first, 14);
    }

    #[test]
    fn the_next_segment_holds_the_position_or_comes_after_it() {
        let listing = Listing { firsts: vec![10, 20, 40], settled: None };
        assert_eq!(listing.after(None, 0), Some(10));
        assert_eq!(listing.after(None, 10), Some(10));
        assert_eq!(listing.after(None, 35), Some(20));
        assert_eq!(listing.after(Some(20), 35), Some(40));
        assert_eq!(listing.after(Some(10), 20), Some(20));
        assert_eq!(listing.after(Some(10), 99), Some(40));
        assert_eq!(listing.after(Some(40), 99), None);
        assert_eq!(Listing::default().after(None, 0), None);
    }
}
