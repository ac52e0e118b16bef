//! A directory that is held by a descriptor, and below which no path leads out.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use crate::platform::{self, NAME_ONLY};

/// A directory, held by a descriptor.
#[derive(Debug)]
pub struct Dir {
    pub(crate) fd: OwnedFd,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket.
    Socket,
    /// A FIFO or a device.
    Other,
}

/// What a path may lead through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// No link at all.
    None,
    /// Links, as long as they stay below the directory.
    Beneath,
}

impl Dir {
    /// Opens a directory by a path that the caller trusts: its own, with whatever links the user put on the way.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = NAME_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// Takes a descriptor of a directory.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::Directory => Ok(Self { fd }),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens a directory below this one. No component of the path may be a link.
    pub fn dir(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { fd: self.resolve(path.as_ref(), NAME_ONLY | OFlags::DIRECTORY, Mode::empty())? })
    }

    /// Makes a directory, or takes the one that is there. A link in its place is an error.
    pub fn make_dir(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.fd, single(name.as_ref())?, mode_bits(mode)) {
            Ok(()) | Err(Errno::EXIST) => self.dir(name),
            Err(error) => Err(error.into()),
        }
    }

    /// A second descriptor of the same directory.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }

    /// What a path stands for, without following a link; none if there is nothing.
    pub fn kind(&self, path: impl AsRef<Path>) -> io::Result<Option<Kind>> {
        match self.resolve(path.as_ref(), NAME_ONLY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(found) => Ok(Some(Kind::of(&found)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // The last component is a link: `openat2` refuses it, `statat` looks at it.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Ok(Some(Kind::Link)),
            Err(error) => Err(error),
        }
    }

    /// When an entry last came or went; none once the directory itself was removed.
    pub fn modified(&self) -> io::Result<Option<SystemTime>> {
        let stat = rustix::fs::fstat(&self.fd)?;
        if stat.st_nlink == 0 {
            return Ok(None);
        }
        Ok(Some(written(&stat)))
    }

    /// What stands at a path below, and which: nothing is followed.
    pub fn look(&self, path: impl AsRef<Path>) -> io::Result<FileIdentity> {
        let found = self.resolve(path.as_ref(), NAME_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
        FileIdentity::at(&found)
    }

    /// The same of the directory itself.
    pub fn look_here(&self) -> io::Result<FileIdentity> {
        FileIdentity::at(&self.fd)
    }

    /// Device and inode of the directory: who it is, whatever it is called.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok((platform::device_of(&stat), stat.st_ino))
    }

    /// Who owns the directory, and its mode.
    pub fn owner(&self) -> io::Result<(u32, u32)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok((stat.st_uid, platform::mode_of(&stat) & 0o7777))
    }

    /// The names in it, at most `limit` of them: one more is an error, so that nobody makes us walk for ever.
    pub fn names(&self, limit: usize) -> io::Result<Vec<OsString>> {
        let entries = self.entries(limit.saturating_add(1))?;
        if entries.len() > limit {
            let what = format!("a directory with more than {limit} entries");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        Ok(entries.into_iter().map(|(name, _)| name).collect())
    }

    /// The first `limit` names in it, in no order, each with what it stands for; what is beyond them is not looked at.
    pub fn entries(&self, limit: usize) -> io::Result<Vec<(OsString, Kind)>> {
        let readable = self.resolve(
            Path::new("."),
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK,
            Mode::empty(),
        )?;
        let mut found = Vec::new();
        platform::list(readable, |name, file_type| {
            if found.len() == limit {
                return false;
            }
            let kind = match file_type {
                // Some file systems do not say; what went meanwhile is nothing of interest.
                FileType::Unknown => self.kind(&name).ok().flatten().unwrap_or(Kind::Other),
                known => Kind::of_type(known),
            };
            found.push((name, kind));
            true
        })?;
        Ok(found)
    }

    /// Takes away a name that is no directory; whether there was one. A link goes itself, not what it points to.
    pub fn remove(&self, name: impl AsRef<Path>) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.fd, single(name.as_ref())?, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives an entry another name in a directory. What has that name is replaced, itself and not what it points to.
    pub fn rename(&self, name: impl AsRef<Path>, to: &Self, new: impl AsRef<Path>) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, single(name.as_ref())?, &to.fd, single(new.as_ref())?)?)
    }

    /// Puts what has a name aside under a free one, whatever it is, and says which; none if there was nothing.
    pub fn put_aside(&self, name: &str) -> io::Result<Option<String>> {
        for number in 0..1_000_u32 {
            let aside = format!("{name}.aside.{number}");
            match rustix::fs::renameat_with(
                &self.fd,
                single(name.as_ref())?,
                &self.fd,
                &aside,
                RenameFlags::NOREPLACE,
            ) {
                Ok(()) => return Ok(Some(aside)),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("a thousand of {name} were put aside already"),
        ))
    }

    /// Opens what a path below the directory leads to, through links as long as they stay below it.
    pub fn open_beneath(&self, path: impl AsRef<Path>, flags: OFlags) -> io::Result<OwnedFd> {
        let path = path.as_ref();
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(platform::open_beneath(&self.fd, path, flags, Mode::empty(), Links::Beneath)?)
    }

    /// Resolves a path below the directory. Never follows a link, never leads above.
    pub(crate) fn resolve(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        // One name needs no walk: as safe, and allowed where a container's filter of system calls knows no `openat2`.
        if path == Path::new(".") || single(path).is_ok() {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            return Ok(rustix::io::retry_on_intr(|| rustix::fs::openat(&self.fd, path, flags, mode))?);
        }
        Ok(platform::open_beneath(&self.fd, path, flags, mode, Links::None)?)
    }
}

/// What was seen at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// What it is.
    pub kind: Kind,
    /// The device that it is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// The id of its file system, which a restart of the host does not change on most; zero where it has none.
    pub filesystem: u64,
}

impl FileIdentity {
    fn at(fd: impl AsFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(&fd)?;
        let filesystem = rustix::fs::fstatvfs(&fd)?.f_fsid;
        let (kind, device) = (Kind::of_mode(stat.st_mode), platform::device_of(&stat));
        Ok(Self { kind, device, inode: stat.st_ino, filesystem })
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Kind {
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Self> {
        Ok(Self::of_mode(rustix::fs::fstat(fd)?.st_mode))
    }

    pub(crate) fn of_mode(mode: RawMode) -> Self {
        Self::of_type(FileType::from_raw_mode(mode))
    }

    fn of_type(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Socket => Self::Socket,
            _ => Self::Other,
        }
    }

    /// How errors call it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a link",
            Self::Socket => "a socket",
            Self::Other => "a pipe or a device",
        }
    }
}

/// When something was last written. A time that nobody can count is the first one.
pub(crate) fn written(stat: &rustix::fs::Stat) -> SystemTime {
    let since = Duration::new(u64::try_from(stat.st_mtime).unwrap_or(0), stat.st_mtime_nsec as u32);
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}

/// A mode as this system's calls take it.
pub(crate) fn mode_bits(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as RawMode)
}

/// A name of one component: calls that have no `RESOLVE_` flags are given nothing else.
pub(crate) fn single(name: &Path) -> io::Result<&Path> {
    let mut parts = name.components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(only)), None) if only.len() == name.as_os_str().len() => Ok(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is not a name in a directory", name.display()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_path_leads_out_and_no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("in/deep")).unwrap();
        fs::write(home.path().join("secret"), "s").unwrap();
        symlink("..", home.path().join("in/up")).unwrap();
        symlink(home.path(), home.path().join("in/away")).unwrap();
        symlink("deep", home.path().join("in/sideways")).unwrap();
        let dir = Dir::open(&home.path().join("in")).unwrap();
        dir.dir("deep").unwrap();
        for path in ["..", "up", "away", "sideways", "deep/../..", "/", "up/in"] {
            let error = dir.dir(path).unwrap_err();
            assert!(
                crate::is_hostile(&error) || error.kind() == io::ErrorKind::NotADirectory,
                "{path}: {error}"
            );
        }
        assert_eq!(dir.kind("up").unwrap(), Some(Kind::Link));
        assert_eq!(dir.kind("deep").unwrap(), Some(Kind::Directory));
        assert_eq!(dir.kind("nothing").unwrap(), None);
        dir.make_dir("sideways", 0o700).unwrap_err();
        let beneath = |path: &str| dir.open_beneath(path, NAME_ONLY | OFlags::DIRECTORY);
        beneath("sideways").unwrap();
        beneath("").unwrap();
        for path in ["..", "up", "away", "deep/../..", "/"] {
            beneath(path).unwrap_err();
        }
    }

    #[test]
    fn a_directory_with_too_many_names_is_refused() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..10 {
            fs::write(home.path().join(number.to_string()), "").unwrap();
        }
        let dir = Dir::open(home.path()).unwrap();
        assert_eq!(dir.names(10).unwrap().len(), 10);
        assert_eq!(dir.names(9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(dir.entries(9).unwrap().len(), 9, "or only so many are looked at");
        assert!(dir.entries(20).unwrap().iter().all(|(_, kind)| *kind == Kind::File));
    }

    #[test]
    fn what_is_put_aside_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        assert_eq!(dir.put_aside("lock").unwrap(), None);
        for expected in ["lock.aside.0", "lock.aside.1"] {
            symlink("nowhere", home.path().join("lock")).unwrap();
            assert_eq!(dir.put_aside("lock").unwrap().as_deref(), Some(expected));
            assert_eq!(dir.kind(expected).unwrap(), Some(Kind::Link));
        }
        dir.put_aside("../lock").unwrap_err();
    }
}
