//! A directory that paths cannot leave: the kernel itself resolves them beneath it, whatever links there are and whoever
//! changes them meanwhile.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Timespec, Timestamps};
use rustix::io::Errno;
use wharf_boundary::{Dir, NAME_ONLY};

/// The directory.
pub(crate) struct Beneath {
    root: Dir,
    /// The directory that was used last: the entries of one come one after the other.
    last: Option<(PathBuf, OwnedFd)>,
}

/// Where an entry goes: its directory, and its name there.
pub(crate) struct Spot<'a> {
    dir: &'a OwnedFd,
    name: &'a OsStr,
}

impl Beneath {
    /// Everything goes below this directory.
    pub(crate) fn new(root: Dir) -> Self {
        Self { root, last: None }
    }

    /// Opens something beneath it.
    fn resolve(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        self.root.open_beneath(path, flags)
    }

    /// The place of an entry; the directories before it are made where they are absent.
    pub(crate) fn spot<'a>(&'a mut self, path: &'a Path) -> io::Result<Spot<'a>> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        if self.last.as_ref().is_none_or(|(known, _)| known != parent) {
            let opened = self.directory(parent)?;
            self.last = Some((parent.to_owned(), opened));
        }
        let (_, dir) = self.last.as_ref().expect("it was just put there");
        Ok(Spot { dir, name })
    }

    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = NAME_ONLY | OFlags::DIRECTORY;
        match self.resolve(path, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let mut made = PathBuf::new();
        for part in path.components() {
            let dir = self.resolve(&made, flags)?;
            match rustix::fs::mkdirat(&dir, part.as_os_str(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            made.push(part);
        }
        self.resolve(path, flags)
    }

    /// Sets the mode and the time of a directory.
    pub(crate) fn finish(&self, path: &Path, mode: u32, modified: u64) -> io::Result<()> {
        let dir = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
        rustix::fs::fchmod(&dir, Mode::from_raw_mode(mode as RawMode))?;
        Ok(rustix::fs::futimens(&dir, &times(modified))?)
    }

    /// Makes another name for a file that is beneath it.
    pub(crate) fn hard_link(&mut self, existing: &Path, new: &Path) -> io::Result<()> {
        let name = existing.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = existing.parent().unwrap_or(Path::new(""));
        let from = self.resolve(parent, NAME_ONLY | OFlags::DIRECTORY)?;
        let spot = self.spot(new)?;
        spot.make_way()?;
        // A link at the end is linked itself, and not what it points to.
        Ok(rustix::fs::linkat(&from, &name, spot.dir, spot.name, AtFlags::empty())?)
    }
}

impl Spot<'_> {
    fn kind(&self) -> io::Result<Option<FileType>> {
        match rustix::fs::statat(self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes away what is there, unless it is a directory.
    fn make_way(&self) -> io::Result<()> {
        match self.kind()? {
            None => Ok(()),
            Some(FileType::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            Some(_) => Ok(rustix::fs::unlinkat(self.dir, self.name, AtFlags::empty())?),
        }
    }

    /// Makes a directory, or takes the one that is there. True where it was made.
    pub(crate) fn make_dir(&self) -> io::Result<bool> {
        match rustix::fs::mkdirat(self.dir, self.name, Mode::RWXU) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) if self.leads_to_a_directory() => Ok(false),
            Err(Errno::EXIST) => Err(io::ErrorKind::NotADirectory.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// A link to a directory is one too. Whether it leads out is seen when something is to go through it.
    fn leads_to_a_directory(&self) -> bool {
        rustix::fs::statat(self.dir, self.name, AtFlags::empty())
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    /// Makes a file that nobody else can read yet. What was there is replaced and never written to.
    pub(crate) fn make_file(&self) -> io::Result<File> {
        self.make_way()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(self.dir, self.name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Makes a symbolic link. Where it points is its own affair: nothing goes through it to the outside.
    pub(crate) fn make_link(&self, target: &Path) -> io::Result<()> {
        self.make_way()?;
        Ok(rustix::fs::symlinkat(target, self.dir, self.name)?)
    }
}

/// Sets the mode and the time of a file that was written.
pub(crate) fn finish(file: &File, mode: u32, modified: u64) -> io::Result<()> {
    rustix::fs::fchmod(file.as_fd(), Mode::from_raw_mode(mode as RawMode))?;
    Ok(rustix::fs::futimens(file.as_fd(), &times(modified))?)
}

fn times(modified: u64) -> Timestamps {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let at = |seconds: u64| Timespec { tv_sec: i64::try_from(seconds).unwrap_or(0), tv_nsec: 0 };
    Timestamps { last_access: at(now.as_secs()), last_modification: at(modified) }
}

/// Whether an error says that a path would have left the directory.
pub(crate) fn is_escape(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::XDEV | Errno::LOOP))
}
