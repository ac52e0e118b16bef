//! Files below a held directory: regular ones, opened without waiting, read up to a limit.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::dir::{Dir, Kind, mode_bits, single, written};
use crate::platform::{self, NAME_ONLY};

/// The largest record (ticket, exit record, prompt's neighbour) that is read whole.
pub const MAX_RECORD_LEN: u64 = 16 << 20;

impl Dir {
    /// Opens a file for reading.
    pub fn open_file(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.regular(path.as_ref(), OFlags::RDONLY, Mode::empty())
    }

    /// Opens a file for reading and writing that is there already.
    pub fn open_file_for_writing(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.regular(path.as_ref(), OFlags::RDWR, Mode::empty())
    }

    /// Opens one of our own files for appending, or makes it. Another name of a file elsewhere (a hard link) is refused.
    pub fn append_file(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<File> {
        self.own(name.as_ref(), OFlags::RDWR | OFlags::CREATE | OFlags::APPEND, mode)
    }

    /// Opens one of our own files for reading and writing, or makes it; it is not truncated.
    pub fn open_or_make_file(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<File> {
        self.own(name.as_ref(), OFlags::RDWR | OFlags::CREATE, mode)
    }

    /// Makes a file that is not there yet.
    pub fn make_file(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = File::from(self.resolve(single(name.as_ref())?, flags, mode_bits(mode))?);
        // Whatever the umask is.
        rustix::fs::fchmod(&file, mode_bits(mode))?;
        Ok(file)
    }

    /// Opens a file for reading that a path leads to, through links as long as they stay below the directory.
    pub fn open_file_beneath(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        let found = self.open_beneath(path, NAME_ONLY)?;
        match Kind::of(&found)? {
            Kind::File => Ok(reopened(&found, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?.into()),
            kind => Err(not_a_file(path, kind)),
        }
    }

    /// What a link says, followed or not.
    pub fn link_target(&self, path: impl AsRef<Path>) -> io::Result<OsString> {
        let link = self.open_beneath(path, NAME_ONLY | OFlags::NOFOLLOW)?;
        Ok(OsString::from_vec(rustix::fs::readlinkat(&link, "", Vec::new())?.into_bytes()))
    }

    /// Reads a whole file of at most `limit` bytes. A longer one is an error, and is not read.
    pub fn read(&self, path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let path = path.as_ref();
        whole(self.open_file(path)?, path, limit)
    }

    /// The same, through links as long as they stay below the directory.
    pub fn read_beneath(&self, path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let path = path.as_ref();
        whole(self.open_file_beneath(path)?, path, limit)
    }

    /// How long a file is, without opening it.
    pub fn file_len(&self, path: impl AsRef<Path>) -> io::Result<u64> {
        self.file_stamp(path).map(|(len, _)| len)
    }

    /// How long a file is and when it was last written, without opening it.
    pub fn file_stamp(&self, path: impl AsRef<Path>) -> io::Result<(u64, SystemTime)> {
        let path = path.as_ref();
        let found = self.resolve(path, NAME_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
        let stat = rustix::fs::fstat(&found)?;
        match Kind::of_mode(stat.st_mode) {
            Kind::File => Ok((u64::try_from(stat.st_size).unwrap_or(0), written(&stat))),
            kind => Err(not_a_file(path, kind)),
        }
    }

    /// Puts a file in its place, whole or not at all. Whatever had the name is replaced and never written to.
    pub fn replace(&self, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
        let new = format!("{name}.new");
        self.remove(&new)?;
        let put = || -> io::Result<()> {
            let mut file = self.make_file(&new, mode)?;
            file.write_all(bytes)?;
            self.rename(&new, self, name)
        };
        put().inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&self.fd, &*new, AtFlags::empty());
        })
    }

    /// One of our own files: with one name only, so that what is written lands nowhere else.
    fn own(&self, name: &Path, flags: OFlags, mode: u32) -> io::Result<File> {
        let file = self.regular(single(name)?, flags, mode_bits(mode))?;
        let meta = file.metadata()?;
        if meta.nlink() > 1 {
            let what = format!("{} has another name elsewhere (a hard link)", name.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if meta.mode() & 0o777 != mode {
            rustix::fs::fchmod(&file, mode_bits(mode))?;
        }
        Ok(file)
    }

    /// Opens a regular file and nothing else. What blocks an open (a FIFO, a lease) does not block this one.
    fn regular(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        if !flags.contains(OFlags::CREATE) {
            // Looked at before it is opened: to open a device may do something already, and a container can make one.
            let found = self.resolve(path, NAME_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
            match Kind::of(&found)? {
                Kind::File => {}
                Kind::Link => return Err(Errno::LOOP.into()),
                kind => return Err(not_a_file(path, kind)),
            }
            match reopened(&found, flags) {
                // A holder may live where there is no /proc. Nobody can take that of this host away.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                opened => return Ok(opened?.into()),
            }
        }
        let opened: OwnedFd = match self.resolve(path, flags, mode) {
            // A FIFO without a reader, or a socket.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
                return Err(not_a_file(path, Kind::Other));
            }
            opened => opened?,
        };
        match Kind::of(&opened)? {
            Kind::File => Ok(opened.into()),
            kind => Err(not_a_file(path, kind)),
        }
    }
}

/// Reads a whole file, if it has no more bytes than that.
fn whole(file: File, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let too_long = || {
        let what = format!("{} has more than {limit} bytes", path.display());
        io::Error::new(io::ErrorKind::FileTooLarge, what)
    };
    let len = file.metadata()?.len();
    if len > limit {
        return Err(too_long());
    }
    // It may grow while it is read.
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_long()) } else { Ok(bytes) }
}

/// Opens what was looked at, itself, whatever has its name by now.
fn reopened(found: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let again = platform::path_of(found);
    let flags = (flags | OFlags::CLOEXEC) - OFlags::NOFOLLOW;
    rustix::io::retry_on_intr(|| rustix::fs::open(&again, flags, Mode::empty()))
}

/// Whether an error says that something stands in a file's place which nobody of ours would put there: a link, a pipe, a
/// directory, a device, too long a file, a way out.
pub fn is_hostile(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge | io::ErrorKind::IsADirectory
    ) || matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::XDEV | Errno::NXIO | Errno::ISDIR))
}

fn not_a_file(path: &Path, kind: Kind) -> io::Error {
    let what = format!("{} is {} and not a file", path.display(), kind.noun());
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    fn quickly<T>(what: &str, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = run();
        assert!(begun.elapsed() < Duration::from_secs(2), "{what} was waited for");
        done
    }

    #[test]
    fn only_a_regular_file_is_read_and_nothing_is_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let dir = Dir::open(home.path()).unwrap();
        assert_eq!(dir.read("file", 4).unwrap(), b"text");
        for name in ["directory", "link", "dangling", "device", "fifo", "socket"] {
            for error in quickly(name, || {
                [
                    dir.read(name, 10).unwrap_err(),
                    dir.append_file(name, 0o600).unwrap_err(),
                    dir.open_or_make_file(name, 0o600).unwrap_err(),
                    dir.open_file_for_writing(name).unwrap_err(),
                ]
            }) {
                assert!(is_hostile(&error), "{name}: {error:?}");
            }
        }
        assert_eq!(fs::read(at("file")).unwrap(), b"text");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn a_long_file_is_refused_unread() {
        let home = tempfile::tempdir().unwrap();
        let file = fs::File::create(home.path().join("holes")).unwrap();
        file.set_len(1 << 40).unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let error = quickly("holes", || dir.read("holes", MAX_RECORD_LEN).unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_file_is_replaced_and_what_was_linked_to_is_not_written() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink("victim", at("record")).unwrap();
        symlink("victim", at("record.new")).unwrap();
        let dir = Dir::open(home.path()).unwrap();
        dir.replace("record", b"new", 0o600).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert_eq!(dir.read("record", 10).unwrap(), b"new");
        fs::hard_link(at("victim"), at("twin")).unwrap();
        let error = dir.append_file("twin", 0o600).unwrap_err();
        assert!(is_hostile(&error), "{error}");
    }
}
