//! Makes, opens, lists and removes the segment files of a log and their indexes.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use crate::files::{Files, MAX_SEGMENT_LEN};
use crate::index;

/// The largest first offset of a segment: what is added to it afterwards overflows nothing.
const MAX_OFFSET: u64 = i64::MAX as u64;

const LOG: &str = "log";
const INDEX: &str = "idx";

/// The directory of a log: knows the names of its segments.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    /// Absolute, because a process may change its working directory between two segments.
    path: PathBuf,
}

impl Directory {
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)? })
    }

    /// Makes the directory, open to its owner only, if it is not there. Whether it was made.
    pub(crate) fn create(&self) -> io::Result<bool> {
        let made = DirBuilder::new().mode(0o700).create(&self.path);
        let made = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
            }
            other => other,
        };
        // The mode given at creation is cut by the umask.
        made.and_then(|()| fs::set_permissions(&self.path, Permissions::from_mode(0o700)))
            .map(|()| true)
            .map_err(|error| named("create", &self.path, &error))
    }

    /// The first offsets of the segments, in order, without a false hole.
    pub(crate) fn segments(&self) -> io::Result<Vec<u64>> {
        settled(u32::MAX, || {
            let entries = fs::read_dir(&self.path).map_err(|error| named("list", &self.path, &error))?;
            let names: io::Result<Vec<OsString>> = entries.map(|entry| Ok(entry?.file_name())).collect();
            Ok(firsts(&names?))
        })
    }

    /// Removes indexes without a segment: what a writer leaves that was killed between the two.
    pub(crate) fn remove_orphans(&self, firsts: &[u64]) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if parse(&name.to_string_lossy(), INDEX)
                .is_some_and(|first| firsts.binary_search(&first).is_err())
            {
                removed(fs::remove_file(self.path.join(name)))?;
            }
        }
        Ok(())
    }

    pub(crate) fn log(&self, first: u64) -> PathBuf {
        self.path.join(log_name(first))
    }

    pub(crate) fn index(&self, first: u64) -> PathBuf {
        self.path.join(index_name(first))
    }

    /// Makes a segment whose index begins with these bytes.
    ///
    /// The appearance of the log file is the moment at which the segment exists; what fails before leaves nothing.
    pub(crate) fn create_segment(&self, first: u64, beginning: &[u8]) -> io::Result<(File, File)> {
        let index = self.create_index(first, beginning)?;
        let log = self.create_log(first).inspect_err(|_| drop(fs::remove_file(self.index(first))))?;
        Ok((log, index))
    }

    /// Makes a segment that has no index yet, and so may have no byte.
    pub(crate) fn create_log(&self, first: u64) -> io::Result<File> {
        let path = self.log(first);
        // Not over an existing one: that would be the segment of a second writer.
        let made = writable().create_new(true).open(&path);
        let log = made.map_err(|error| named("create", &path, &error))?;
        // Too late to fail: a reader may have moved on to this segment already. Only a umask that takes
        // rights from the owner makes a difference here.
        let _ = private(&log);
        Ok(log)
    }

    /// Makes the index of a segment, with these bytes. What fails leaves none.
    pub(crate) fn create_index(&self, first: u64, beginning: &[u8]) -> io::Result<File> {
        let path = self.index(first);
        let make = || {
            let index = writable().create(true).truncate(true).open(&path)?;
            private(&index)?;
            index.write_all_at(beginning, 0)?;
            Ok(index)
        };
        make().map_err(|error| {
            let _ = fs::remove_file(&path);
            named("create", &path, &error)
        })
    }

    /// Opens an existing segment for writing. Its index is missing where it has no byte yet.
    pub(crate) fn reopen_segment(&self, first: u64) -> io::Result<(File, Option<File>)> {
        let (log, index) = (self.log(first), self.index(first));
        let log = writable().open(&log).map_err(|error| named("open", &log, &error))?;
        // Bytes whose index is lost get another.
        let create = log.metadata()?.len() > 0;
        let opened = writable().create(create).truncate(false).open(&index);
        let index = absent(opened).map_err(|error| named("open", &index, &error))?;
        if let Some(index) = &index {
            private(index)?;
        }
        Ok((log, index))
    }

    /// Removes a segment: first the bytes, then their index.
    pub(crate) fn remove_segment(&self, first: u64) -> io::Result<()> {
        removed(fs::remove_file(self.log(first)))?;
        removed(fs::remove_file(self.index(first)))
    }
}

/// The segments that stand among the names in a directory, in order. One that begins where no file can reach is none.
pub(crate) fn firsts(names: &[OsString]) -> Vec<u64> {
    let mut firsts: Vec<u64> = names
        .iter()
        .filter_map(|name| parse(name.to_str()?, LOG))
        .filter(|first| *first <= MAX_OFFSET)
        .collect();
    firsts.sort_unstable();
    firsts
}

/// The first offsets of the segments, in order, without a false hole, from walks of which each may miss a file that is made
/// during it, and still find a later one.
///
/// Segments are made in order, so all up to the last of one walk were there before the next walk began: that
/// one misses none of them, and what it does not find is really gone. If the last itself is gone by then,
/// so much has happened that only another look tells what the last one is. The same if the second walk finds a later one:
/// a writer that has replaced an empty last segment meanwhile may have hidden both from the first walk, and the log
/// would seem to end before bytes that somebody was told of. Who makes us look too often is no writer; then what the last
/// walk found has to do.
pub(crate) fn settled(looks: u32, mut walk: impl FnMut() -> io::Result<Vec<u64>>) -> io::Result<Vec<u64>> {
    let mut last = walk()?.last().copied();
    let mut look = 0;
    loop {
        let mut firsts = walk()?;
        let newest = firsts.last().copied();
        firsts.retain(|first| Some(*first) <= last);
        look += 1;
        let found_again = firsts.last().copied() == last && (last.is_some() || newest.is_none());
        if found_again && (newest == last || look > 1) || look >= looks {
            return Ok(firsts);
        }
        last = newest;
    }
}

/// What a segment's bytes are called.
pub(crate) fn log_name(first: u64) -> String {
    format!("{first:020}.{LOG}")
}

/// What a segment's index is called.
pub(crate) fn index_name(first: u64) -> String {
    format!("{first:020}.{INDEX}")
}

/// A segment open for reading. It can be read to its end even after its files were removed.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) first: u64,
    pub(crate) log: File,
    /// None where it is missing or of a version that we do not know.
    pub(crate) index: Option<File>,
    /// The index was missing, and may be there once the segment has bytes.
    awaited: bool,
}

impl Segment {
    /// Opens a segment; none if it was removed meanwhile.
    pub(crate) fn open(files: &Files, first: u64) -> io::Result<Option<Self>> {
        // The index first: it is removed last, so bytes that can be opened have their marks.
        let (index, awaited) = open_index(files, first)?;
        Ok(files.open_log(first)?.map(|log| Self { first, log, index, awaited }))
    }

    /// There are bytes: their index, which is made before them, is there as well.
    pub(crate) fn find_index(&mut self, files: &Files) -> io::Result<()> {
        if self.awaited {
            (self.index, self.awaited) = (open_index(files, self.first)?.0, false);
        }
        Ok(())
    }

    /// The offset after its last byte, for now.
    pub(crate) fn end(&self) -> io::Result<u64> {
        Ok(self.first + self.log.metadata()?.len().min(MAX_SEGMENT_LEN))
    }

    /// When its last byte was written, as far as the file system's clock tells (some milliseconds).
    pub(crate) fn modified(&self) -> io::Result<u64> {
        Ok(micros(self.log.metadata()?.modified()?))
    }
}

/// The index, where there is one of use; and whether there is none at all.
fn open_index(files: &Files, first: u64) -> io::Result<(Option<File>, bool)> {
    Ok(match files.open_index(first)? {
        Some(index) if index::is_sound(&index, first)? => (Some(index), false),
        found => (None, found.is_none()),
    })
}

/// A time as the index has it.
pub(crate) fn micros(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// An error that names the file.
pub(crate) fn named(verb: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {verb} {}: {error}", path.display()))
}

fn parse(name: &str, extension: &str) -> Option<u64> {
    let digits = name.strip_suffix(extension)?.strip_suffix('.')?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The mode of the files that this process makes.
static MODE: AtomicU32 = AtomicU32::new(0o600);

/// Has this process make log files that any user can read and write, for a directory around them that keeps others out:
/// whoever writes in a container need not be whoever reads on the host. Called before the first log is opened.
pub fn share_files() {
    MODE.store(0o666, Ordering::Relaxed);
}

fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(MODE.load(Ordering::Relaxed));
    // Ours is no link, and what is one is not ours.
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Gives the owner, and nobody else, what a umask may have taken. To look costs less than to change.
fn private(file: &File) -> io::Result<()> {
    let mode = MODE.load(Ordering::Relaxed);
    if file.metadata()?.mode() & 0o777 == mode {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(mode))
}

fn absent(opened: io::Result<File>) -> io::Result<Option<File>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_segments_are_segments() {
        assert_eq!(parse("00000000000000000042.log", LOG), Some(42));
        assert_eq!(parse("18446744073709551615.log", LOG), Some(u64::MAX));
        for other in
            ["42.log", "00000000000000000042.idx", "+0000000000000000042.log", "99999999999999999999.log"]
        {
            assert_eq!(parse(other, LOG), None, "{other}");
        }
    }

    #[test]
    fn a_last_segment_that_is_replaced_during_a_walk_does_not_hide_its_successor() {
        // The first walk passed the place of 30 before it was made, and came to that of 20 when it had been removed.
        let mut walks = [vec![0, 10], vec![0, 10, 30], vec![0, 10, 30, 40]].into_iter();
        assert_eq!(settled(64, || Ok(walks.next().unwrap())).unwrap(), [0, 10, 30]);
        // Where nothing changes two walks are enough.
        let mut walks = [vec![0, 10], vec![0, 10]].into_iter();
        assert_eq!(settled(64, || Ok(walks.next().unwrap())).unwrap(), [0, 10]);
        // A last one that is gone, and one that never stays.
        let mut walks = [vec![0, 10], vec![0, 20], vec![0, 20]].into_iter();
        assert_eq!(settled(64, || Ok(walks.next().unwrap())).unwrap(), [0, 20]);
        let mut next = 0;
        let restless = settled(8, || {
            next += 1;
            Ok(vec![0, next])
        });
        assert_eq!(restless.unwrap(), [0]);
    }

    #[test]
    fn what_cannot_be_created_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let dir = Directory::at(home.path()).unwrap();
        fs::create_dir(dir.log(7)).unwrap();
        let error = dir.create_segment(7, b"").unwrap_err();
        assert!(error.to_string().contains("00000000000000000007.log"), "{error}");
        assert!(!dir.index(7).exists());
    }
    #[test]
    fn the_index_outlives_the_bytes() {
        let home = tempfile::tempdir().unwrap();
        let dir = Directory::at(home.path()).unwrap();
        fs::write(dir.index(0), "").unwrap();
        // Bytes that cannot be removed, for this once.
        fs::create_dir(dir.log(0)).unwrap();
        dir.remove_segment(0).unwrap_err();
        assert!(dir.index(0).exists());
    }
    #[test]
    fn a_listing_has_no_false_holes() {
        let home = tempfile::tempdir().unwrap();
        let dir = Directory::at(home.path()).unwrap();
        // A directory that the kernel hands out in several pieces, between which files are made.
        for stranger in 0..800 {
            fs::write(dir.path.join(format!("a stranger with a long name {stranger}")), "").unwrap();
        }
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..400).for_each(|first| fs::write(dir.log(first), "").unwrap()));
            while !writer.is_finished() {
                // One walk alone fails here.
                let firsts = dir.segments().unwrap();
                assert!(firsts.iter().copied().eq(0..firsts.len() as u64), "a hole in {firsts:?}");
            }
        });
    }
}
