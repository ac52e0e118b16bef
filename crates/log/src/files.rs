//! The files of a log as readers reach them: held, without links, and bounded, because who writes them may be hostile.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use wharf_boundary::Dir;

use crate::segment::{self, named};

/// The most entries of a log's directory that a reader lists: 128 GiB of the largest segments with their indexes.
const MAX_ENTRIES: usize = 1 << 16;

/// How often a reader looks again at what changes under it. A writer changes a log now and then, and never so often.
pub(crate) const MAX_LOOKS: u32 = 64;

/// The most of one segment that is read: many times what a writer puts into one.
pub(crate) const MAX_SEGMENT_LEN: u64 = 256 << 20;

/// The directory of a log, held by a descriptor from the first look on.
#[derive(Debug)]
pub(crate) struct Files {
    /// Absolute, because a process may change its working directory.
    path: PathBuf,
    held: Mutex<Arc<Dir>>,
}

impl Files {
    /// Opens the log at a path: the directory of a session, and the log's name in it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let held = Mutex::new(Arc::new(open(&path)?));
        Ok(Self { path, held })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> Arc<Dir> {
        Arc::clone(&self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When a segment last came or went. A log that was removed is looked for again where it was.
    pub(crate) fn modified(&self) -> io::Result<SystemTime> {
        if let Some(modified) = self.dir().modified()? {
            return Ok(modified);
        }
        let again = Arc::new(open(&self.path)?);
        let modified = again.modified()?.ok_or(io::ErrorKind::NotFound)?;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = again;
        Ok(modified)
    }

    /// The first offsets of the segments, in order, without a false hole: see [`segment::settled`].
    pub(crate) fn segments(&self) -> io::Result<Vec<u64>> {
        let dir = self.dir();
        segment::settled(MAX_LOOKS, || {
            let names = dir.names(MAX_ENTRIES).map_err(|error| named("list", &self.path, &error))?;
            Ok(segment::firsts(&names))
        })
    }

    /// Opens the bytes of a segment; none if it was removed.
    pub(crate) fn open_log(&self, first: u64) -> io::Result<Option<File>> {
        self.open_file(segment::log_name(first))
    }

    /// Opens the index of a segment; none if there is none.
    pub(crate) fn open_index(&self, first: u64) -> io::Result<Option<File>> {
        self.open_file(segment::index_name(first))
    }

    fn open_file(&self, name: String) -> io::Result<Option<File>> {
        match self.dir().open_file(&name) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(named("open", &self.path.join(name), &error)),
        }
    }
}

fn open(path: &Path) -> io::Result<Dir> {
    wharf_boundary::open_log(path).map_err(|error| named("open", path, &error))
}

/// How long the segment that was written to last has been as it is; none for a log in which nothing was ever written.
pub fn last_written(dir: &Path) -> io::Result<Option<SystemTime>> {
    let files = Files::open(dir)?;
    let Some(last) = files.segments()?.pop() else { return Ok(None) };
    let Some(log) = files.open_log(last)? else { return Ok(None) };
    let meta = log.metadata()?;
    if meta.len() == 0 { Ok(None) } else { meta.modified().map(Some) }
}

/// What an error says when somebody changes a log all the time.
pub(crate) fn restless(path: &Path) -> io::Error {
    let what = format!("{} does not stay as it is long enough to be read", path.display());
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Between two looks at something that changes, whoever changes it gets a moment.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_micros(100);
