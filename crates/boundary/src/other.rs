//! The same names as on Linux, for the systems that have something else or nothing: SCOPE.md says what is to be written.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::Resource;

use crate::dir::Links;

/// Opens for reading, without waiting.
pub const NAME_ONLY: OFlags = OFlags::NONBLOCK;

pub(crate) const NOSIGNAL: SendFlags = SendFlags::empty();

pub(crate) const RECEIVE_CLOEXEC: RecvFlags = RecvFlags::empty();

pub(crate) const OWN_LIMITS: &[Resource] = &[];

/// Nothing keeps a path of several names below a directory here: it is refused.
pub(crate) fn open_beneath(
    _: &OwnedFd,
    _: &Path,
    _: OFlags,
    _: Mode,
    links: Links,
) -> Result<OwnedFd, Errno> {
    match links {
        Links::None | Links::Beneath => Err(Errno::NOTSUP),
    }
}

/// Nothing is known to be in memory.
pub(crate) fn open_cached(_: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOTSUP)
}

/// A path that leads to what a descriptor holds, opened as it is.
pub fn path_of(fd: impl AsFd) -> PathBuf {
    format!("/dev/fd/{}", fd.as_fd().as_raw_fd()).into()
}

pub(crate) fn list(
    readable: OwnedFd,
    mut entry: impl FnMut(OsString, FileType) -> bool,
) -> Result<(), Errno> {
    for found in rustix::fs::Dir::new(readable)? {
        let found = found?;
        let name = OsString::from_vec(found.file_name().to_bytes().to_vec());
        if name != "." && name != ".." && !entry(name, found.file_type()) {
            break;
        }
    }
    Ok(())
}

/// The mode in what `stat` says, with the file's type.
pub fn mode_of(stat: &Stat) -> u32 {
    u32::from(stat.st_mode)
}

pub(crate) fn device_of(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

pub(crate) fn stream_socket() -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// Datagrams keep their bounds, too; but their end is not told.
pub(crate) fn message_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::empty(), None)?;
    rustix::io::fcntl_setfd(&pair.0, FdFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&pair.1, FdFlags::CLOEXEC)?;
    Ok(pair)
}

/// Nothing refuses them here.
pub(crate) fn take_descriptors(_: impl AsFd, _: bool) {}

/// Nobody is proven here, so nobody is believed.
pub(crate) fn credentials(_: impl AsFd) -> io::Result<(i32, u32)> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn process_of(_: impl AsFd) -> Option<OwnedFd> {
    None
}

pub(crate) fn is_unmapped(_: u32) -> bool {
    false
}

pub(crate) fn is_locked_by_us(_: u64, _: u64) -> bool {
    false
}
