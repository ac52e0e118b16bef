//! Appends output and index records to a log, starts new segments, and drops old ones.

use std::collections::VecDeque;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_model::{Offset, Size};

use crate::index::{self, Cursor, RECORD_LEN};
use crate::mark::{Mark, Record, Stream};
use crate::platform;
use crate::retention::Retention;
use crate::segment::{Directory, micros};

/// Time marks stand at least this far apart.
const TICK_MICROS: u64 = 5_000;

/// The one process that adds to a log.
///
/// It holds two descriptors and some hundred bytes, and allocates nothing per write. There must be only one at a
/// time; the next one, in whatever process, continues where the last one ended, however that came about.
///
/// The order of calls for each piece of output: [`mark`](Self::mark) its stream (free if unchanged),
/// [`append`](Self::append) or [`splice_from`](Self::splice_from), then [`tick`](Self::tick).
///
/// # When the disk is full
///
/// `append` and `splice_from` fail with [`io::ErrorKind::StorageFull`]. What was written before the failure
/// stays, and [`end`](Self::end) counts it; what a failed `splice_from` did not write is still in the pipe. The
/// holder tries again, or drops the bytes and says so with [`skip`](Self::skip).
#[derive(Debug)]
pub struct Writer {
    dir: Directory,
    retention: Retention,
    current: Current,
    /// The segments before the current one, oldest first, and the sum of their sizes.
    older: VecDeque<Kept>,
    older_size: u64,
    /// Bytes declared lost, for which no new segment could be made yet.
    skipped: u64,
    stream: Stream,
    size: Option<Size>,
    /// Marks that could not be written yet. No byte is written before them.
    owed: Owed,
    /// Place and time of the last record in the current index.
    last: Moment,
    /// A time that came too soon after the last record. It is written if a pause follows, because it is then the
    /// time at which the output before the pause ended.
    held: Option<Moment>,
    /// The last time we were told.
    now: u64,
}

#[derive(Debug)]
struct Current {
    first: u64,
    log: File,
    len: u64,
    /// A log without output has none: it is made before the first byte.
    index: Option<File>,
    index_len: u64,
}

#[derive(Debug)]
struct Kept {
    first: u64,
    end: u64,
    /// Bytes and index together.
    size: u64,
}

#[derive(Debug, Clone, Copy)]
struct Moment {
    offset: u64,
    micros: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Owed {
    stream: bool,
    size: bool,
    restart: Option<u32>,
}

impl Owed {
    fn any(self) -> bool {
        self.stream || self.size || self.restart.is_some()
    }
}

impl Writer {
    /// Opens the log in `dir`: makes it, or continues it at its end.
    ///
    /// The directory gets mode 0700 and the files 0600, whatever the umask.
    pub fn open(dir: &Path, retention: Retention) -> io::Result<Self> {
        let dir = Directory::at(dir)?;
        // What was made a moment ago has nothing in it, and a start need not wait until that has been looked at.
        let fresh = dir.create()?;
        let mut firsts = if fresh { Vec::new() } else { dir.segments()? };
        if !fresh {
            dir.remove_orphans(&firsts)?;
        }
        let now = micros(SystemTime::now());
        let Some(first) = firsts.pop() else {
            let log = dir.create_log(0)?;
            let current = Current { first: 0, log, len: 0, index: None, index_len: 0 };
            return Ok(Self::new(dir, retention, current, now));
        };
        let (log, index) = dir.reopen_segment(first)?;
        let current = Current { first, len: log.metadata()?.len(), log, index, index_len: 0 };
        let mut writer = Self::new(dir, retention, current, now);
        for first in firsts {
            writer.count_older(first)?;
        }
        writer.resume()?;
        writer.trim();
        Ok(writer)
    }

    fn new(dir: Directory, retention: Retention, current: Current, now: u64) -> Self {
        Self {
            dir,
            retention,
            last: Moment { offset: current.first, micros: now },
            current,
            older: VecDeque::new(),
            older_size: 0,
            skipped: 0,
            stream: Stream::default(),
            size: None,
            owed: Owed::default(),
            held: None,
            now,
        }
    }

    fn count_older(&mut self, first: u64) -> io::Result<()> {
        let len = self.dir.log(first).metadata()?.len();
        let index = self.dir.index(first).metadata().map_or(0, |data| data.len());
        self.older.push_back(Kept { first, end: first + len, size: len + index });
        self.older_size += len + index;
        Ok(())
    }

    /// Takes up the state that the index of an existing segment ends with, and cuts off what is not of use.
    fn resume(&mut self) -> io::Result<()> {
        let end = self.current.end();
        let Some(index) = &self.current.index else { return Ok(()) };
        if !index::is_sound(index, self.current.first)? {
            // Damaged, or of a later version. We do not write over it: its bytes may still be read with it.
            if self.current.len > 0 {
                return self.rotate(end);
            }
            self.current.index = None;
            return Ok(());
        }
        let mut cursor = Cursor::new();
        let mut last = None;
        while let Some(record) = cursor.peek(index)?.filter(|record| record.offset.0 <= end) {
            match record.mark {
                Mark::Stream(stream) => self.stream = stream,
                Mark::Resize(size) => self.size = Some(size),
                Mark::Time | Mark::Restart(_) => {}
            }
            last = Some(Moment { offset: record.offset.0, micros: record.micros });
            cursor.advance();
        }
        // A torn record, or such as speak of bytes that a crash of the machine took: what we write must come
        // after all that counts.
        self.current.index_len = cursor.position();
        index.set_len(self.current.index_len)?;
        if let Some(last) = last {
            self.last = last;
        }
        if end > self.last.offset {
            // The last writer had no time to say when these bytes came, but the file system knows.
            let modified = micros(self.current.log.metadata()?.modified()?);
            let _ = self.write_record(end, modified, Mark::Time);
        }
        Ok(())
    }

    /// The position after the last byte, where the next one goes.
    pub fn end(&self) -> Offset {
        Offset(self.current.end() + self.skipped)
    }

    /// The position of the oldest byte that is kept.
    pub fn start(&self) -> Offset {
        Offset(self.older.front().map_or(self.current.first, |oldest| oldest.first))
    }

    /// What is kept of the log at most.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// The first position of the segment that is written to, which is held open whatever becomes of its name.
    pub fn held_from(&self) -> Offset {
        Offset(self.current.first)
    }

    /// Whether the segment that is written to no longer has its name: somebody took the files away, or put others there.
    pub fn is_displaced(&self) -> bool {
        let identity = |meta: Metadata| (meta.dev(), meta.ino());
        let held = self.current.log.metadata().map(identity);
        let named = fs::symlink_metadata(self.dir.log(self.current.first)).map(identity);
        !matches!((held, named), (Ok(held), Ok(named)) if held == named)
    }

    /// The first position at or after `from` that is kept, or that is still to come.
    pub fn kept_from(&self, from: Offset) -> Offset {
        let from = from.0;
        if from >= self.current.first {
            return Offset(from);
        }
        let next = self.older.partition_point(|kept| kept.end <= from);
        Offset(self.older.get(next).map_or(self.current.first, |kept| kept.first.max(from)))
    }

    /// Adds bytes at the end.
    ///
    /// On an error a part of them may have been written; [`end`](Self::end) tells how many.
    pub fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.prepare()?;
        while !bytes.is_empty() {
            match self.current.log.write_at(bytes, self.current.len) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.current.len += written as u64;
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.trim();
        Ok(())
    }

    /// Moves up to `len` bytes from a pipe to the end, and returns how many; 0 when the pipe was closed.
    ///
    /// On Linux the kernel moves them in one call: at no time are they neither in the pipe nor in the log, so a
    /// writer that is killed loses nothing as long as someone holds the pipe. It never waits: an empty pipe is
    /// [`io::ErrorKind::WouldBlock`], even if the pipe is a blocking one. On an error nothing was taken from it.
    pub fn splice_from(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
        self.prepare()?;
        let moved = match platform::splice(pipe, &self.current.log, self.current.len, len)? {
            Some(moved) => {
                self.current.len += moved as u64;
                moved
            }
            None => self.copy_from(pipe, len)?,
        };
        self.trim();
        Ok(moved)
    }

    /// As `splice_from`, where the system or the file system has no splice.
    fn copy_from(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::IN)], Some(&now))? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut buf = [0; 8 << 10];
        let len = len.min(buf.len());
        let read = rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut buf[..len]))?;
        let before = self.end();
        if self.append(&buf[..read]).is_err() {
            // They are no longer in the pipe, so the caller cannot try again.
            self.skip(read as u64 - (self.end() - before));
        }
        Ok(read)
    }

    /// Declares that the next `n` bytes of the session are lost.
    ///
    /// The log goes on `n` bytes further in a new segment; readers find the hole between the two. On a disk without room
    /// that is an empty file, which needs none on most: its name alone says how much is lost, also to the next writer when
    /// this one is killed. Where not even that can be made, it happens with the next write.
    pub fn skip(&mut self, n: u64) {
        self.skipped += n;
        if self.skipped > 0 {
            let first = self.end().0;
            let _ = self.rotate(first).or_else(|_| self.rotate_bare(first));
        }
    }

    /// Notes something about the bytes that follow.
    ///
    /// A stream or a size that is in force already is not written again. If a mark cannot be written it is
    /// remembered, and no byte is taken before it was.
    pub fn mark(&mut self, mark: Mark, now_micros: u64) -> io::Result<()> {
        match mark {
            Mark::Stream(stream) if stream == self.stream => return Ok(()),
            Mark::Resize(size) if Some(size) == self.size => return Ok(()),
            _ => {}
        }
        self.release_held();
        self.now = now_micros;
        match mark {
            // No byte, no time of one.
            Mark::Time if self.current.index.is_none() => return Ok(()),
            Mark::Time => return self.write_record(self.current.end(), now_micros, mark),
            Mark::Stream(stream) => {
                self.stream = stream;
                self.owed.stream = true;
            }
            Mark::Resize(size) => {
                self.size = Some(size);
                self.owed.size = true;
            }
            Mark::Restart(run) => self.owed.restart = Some(run),
        }
        // Without an index it is what the index will begin with.
        if self.current.index.is_none() { Ok(()) } else { self.prepare() }
    }

    /// Notes the time of the bytes that were just added.
    ///
    /// To be called after each write, and as often as one likes: a record is written only if there are new bytes
    /// and 5 ms have passed since the last one.
    pub fn tick(&mut self, now_micros: u64) -> io::Result<()> {
        self.now = now_micros;
        let end = self.current.end();
        if end == self.last.offset {
            return Ok(());
        }
        if !passed(self.last.micros, now_micros) {
            // Bytes that are waiting for their time since an earlier tick keep the earlier one.
            if self.held.is_none_or(|held| held.offset < end) {
                self.held = Some(Moment { offset: end, micros: now_micros });
            }
            return Ok(());
        }
        let mut micros = now_micros;
        match self.held.take() {
            Some(held) if held.offset == end => micros = held.micros,
            Some(held) if passed(held.micros, now_micros) => {
                self.write_record(held.offset, held.micros, Mark::Time)?;
            }
            _ => {}
        }
        self.write_record(end, micros, Mark::Time)
    }

    /// Reads bytes at a position, and returns how many; 0 where none are kept.
    ///
    /// That is so at the end, beyond it, and in a gap: see [`kept_from`](Self::kept_from). Reading what was
    /// written lately is one system call.
    pub fn read_at(&self, from: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let from = from.0;
        if let Some(place) = from.checked_sub(self.current.first) {
            return self.current.log.read_at(buf, place);
        }
        let after = self.older.partition_point(|kept| kept.first <= from);
        match after.checked_sub(1).and_then(|holds| self.older.get(holds)) {
            Some(kept) if from < kept.end => {
                File::open(self.dir.log(kept.first))?.read_at(buf, from - kept.first)
            }
            _ => Ok(0),
        }
    }

    /// Does what is due before a write. In the steady state that is two comparisons.
    fn prepare(&mut self) -> io::Result<()> {
        if self.skipped > 0 {
            self.rotate(self.end().0)?;
        } else if self.current.len > 0 && self.current.size() >= self.retention.segment {
            // A segment that is too large is better than bytes that are lost: try again at the next write.
            let _ = self.rotate(self.current.end());
        }
        if self.current.index.is_none() {
            self.make_index()?;
        }
        if self.owed.any() {
            self.pay()?;
        }
        Ok(())
    }

    /// Makes the index, which begins with all that was noted so far.
    fn make_index(&mut self) -> io::Result<()> {
        let Current { first, .. } = self.current;
        let (bytes, len) = beginning(first, self.now, self.stream, self.size, self.owed.restart);
        self.current.index = Some(self.dir.create_index(first, &bytes[..len])?);
        self.current.index_len = len as u64;
        self.owed = Owed::default();
        self.last = Moment { offset: first, micros: self.now };
        Ok(())
    }

    /// Writes the marks that are owed.
    fn pay(&mut self) -> io::Result<()> {
        let marks = [
            self.owed.stream.then_some(Mark::Stream(self.stream)),
            self.size.filter(|_| self.owed.size).map(Mark::Resize),
            self.owed.restart.map(Mark::Restart),
        ];
        for mark in marks.into_iter().flatten() {
            self.write_record(self.current.end(), self.now, mark)?;
        }
        self.owed = Owed::default();
        Ok(())
    }

    /// Starts a new segment.
    fn rotate(&mut self, first: u64) -> io::Result<()> {
        // Its own index is where the time of the last bytes belongs.
        self.release_held();
        let (bytes, len) = beginning(first, self.now, self.stream, self.size, self.owed.restart);
        let (log, index) = self.dir.create_segment(first, &bytes[..len])?;
        self.owed = Owed::default();
        self.go_on(Current { first, log, len: 0, index: Some(index), index_len: len as u64 });
        Ok(())
    }

    /// Starts a new segment without an index, which gets one with its first byte.
    fn rotate_bare(&mut self, first: u64) -> io::Result<()> {
        let log = self.dir.create_log(first)?;
        self.go_on(Current { first, log, len: 0, index: None, index_len: 0 });
        Ok(())
    }

    fn go_on(&mut self, next: Current) {
        let first = next.first;
        let done = std::mem::replace(&mut self.current, next);
        if done.len == 0 {
            // One lost chunk after the other would pile up empty files.
            let _ = self.dir.remove_segment(done.first);
        } else {
            self.older.push_back(Kept { first: done.first, end: done.end(), size: done.size() });
            self.older_size += done.size();
        }
        self.skipped = 0;
        self.last = Moment { offset: first, micros: self.now };
        self.trim();
    }

    /// Drops the oldest segments until the rest is small enough.
    fn trim(&mut self) {
        while self.older_size + self.current.size() > self.retention.total {
            let Some(oldest) = self.older.front() else { return };
            // If it cannot be removed, the next write tries again.
            if self.dir.remove_segment(oldest.first).is_err() {
                return;
            }
            self.older_size -= oldest.size;
            self.older.pop_front();
        }
    }

    /// Writes the time that was held back.
    ///
    /// Here and elsewhere a time that cannot be written is let go: it is never worth a byte of output.
    fn release_held(&mut self) {
        if let Some(held) = self.held.take() {
            let _ = self.write_record(held.offset, held.micros, Mark::Time);
        }
    }

    fn write_record(&mut self, offset: u64, micros: u64, mark: Mark) -> io::Result<()> {
        let bytes = index::encode(Record { offset: Offset(offset), micros, mark });
        // At a place of our own counting: half a record on a full disk is written over by the next.
        let Some(index) = &self.current.index else { return Ok(()) };
        index.write_all_at(&bytes, self.current.index_len)?;
        self.current.index_len += RECORD_LEN as u64;
        self.last = Moment { offset, micros };
        Ok(())
    }
}

impl Drop for Writer {
    /// Leaves the time of the last bytes. A writer that is killed does not, and nothing depends on it.
    fn drop(&mut self) {
        self.release_held();
    }
}

impl Current {
    fn end(&self) -> u64 {
        self.first + self.len
    }

    fn size(&self) -> u64 {
        self.len + self.index_len
    }
}

/// Whether the time from one moment to the other is long enough for a mark. A clock that was set back is.
fn passed(from: u64, to: u64) -> bool {
    to.checked_sub(from).is_none_or(|micros| micros >= TICK_MICROS)
}

/// What an index begins with: the header, and all that a reader must know who reads only this segment.
fn beginning(
    first: u64,
    micros: u64,
    stream: Stream,
    size: Option<Size>,
    restart: Option<u32>,
) -> ([u8; 4 * RECORD_LEN], usize) {
    let (mut bytes, mut len) = ([0; 4 * RECORD_LEN], 0);
    let mut put = |record: [u8; RECORD_LEN]| {
        bytes[len..len + RECORD_LEN].copy_from_slice(&record);
        len += RECORD_LEN;
    };
    put(index::header(first));
    let marks = [Some(Mark::Stream(stream)), size.map(Mark::Resize), restart.map(Mark::Restart)];
    for mark in marks.into_iter().flatten() {
        put(index::encode(Record { offset: Offset(first), micros, mark }));
    }
    (bytes, len)
}
