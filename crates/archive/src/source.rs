//! What is to be packed, held by a descriptor: whatever has its name a moment later is something else.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use wharf_boundary::{Dir, NAME_ONLY, path_of};

/// A file, a link or a directory, as it was found.
#[derive(Debug)]
pub struct PackSource {
    /// Opened as a place only: nothing was read, and no pipe waited for.
    found: File,
    path: PathBuf,
}

impl PackSource {
    /// Finds what a path of the user's own leads to: the links on the way are his. One at its end is followed if asked.
    pub fn open(path: &Path, follow: bool) -> io::Result<Self> {
        let found = rustix::fs::open(path, place(follow), Mode::empty())?;
        Ok(Self { found: found.into(), path: path.to_owned() })
    }

    /// The same in a directory that somebody else writes in: no link leads out of it. One at the end that would is not
    /// followed, and is what was found.
    pub fn open_beneath(dir: &Dir, path: &Path, follow: bool) -> io::Result<Self> {
        let found = match dir.open_beneath(path, place(follow)) {
            Err(error) if follow && Errno::from_io_error(&error) == Some(Errno::XDEV) => {
                dir.open_beneath(path, place(false))?
            }
            found => found?,
        };
        Ok(Self { found: found.into(), path: path.to_owned() })
    }

    /// What it is.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.found.metadata()
    }

    pub(crate) fn stat(&self) -> io::Result<rustix::fs::Stat> {
        Ok(rustix::fs::fstat(&self.found)?)
    }

    /// Where it was looked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is called; of one such as `.` or `a/..`, what it really is called.
    pub fn name(&self) -> OsString {
        let text = self.path.as_os_str().as_encoded_bytes();
        // The last of "a/." is "." and not "a".
        let dots = text.ends_with(b"/.") || text.ends_with(b"/");
        let plain = self.path.file_name().filter(|_| !dots).map(OsString::from);
        let real = || std::fs::read_link(path_of(&self.found)).ok()?.file_name().map(OsString::from);
        plain.or_else(real).unwrap_or_else(|| "root".into())
    }

    /// Where it points, of a link.
    pub fn target(&self) -> io::Result<PathBuf> {
        read_link(&self.found, Path::new(""))
    }

    /// The directory, to look for what is in it.
    pub(crate) fn dir(&self) -> io::Result<Dir> {
        Dir::from_fd(OwnedFd::from(self.found.try_clone()?))
    }

    /// The file, to read: this very one, whatever has its name.
    pub(crate) fn file(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path_of(&self.found), flags, Mode::empty())?.into())
    }
}

/// Reads a link in a directory, or the one that is held itself where the name is empty.
pub(crate) fn read_link(dir: impl AsFd, name: &Path) -> io::Result<PathBuf> {
    let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

fn place(follow: bool) -> OFlags {
    let link = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    NAME_ONLY | OFlags::CLOEXEC | link
}

/// What a name in a directory stands for, without following a link; none where it went meanwhile.
pub(crate) fn look(dir: &Dir, name: &Path) -> io::Result<Option<rustix::fs::Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
