//! Sockets by paths of any length, and descriptors over them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

/// The most descriptors that one message carries.
const MAX_PASSED_FDS: usize = 8;

/// A socket's path must be under 108 bytes. Through the descriptor of its directory it always is.
fn short<T>(path: &Path, then: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() < 100 {
        return then(path);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    then(&PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
}

/// Listens at a path.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    short(path, |path| UnixListener::bind(path))
}

/// Connects to a path.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    short(path, |path| UnixStream::connect(path))
}

/// Sends bytes, and descriptors with the first of them. Returns how many bytes went.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[IoSlice<'_>],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    let flags = SendFlags::NOSIGNAL;
    Ok(rustix::io::retry_on_intr(|| rustix::net::sendmsg(socket, bytes, &mut control, flags))?)
}

/// Sends bytes alone, which costs less. Returns how many went.
pub(crate) fn send_bytes(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::net::send(socket, bytes, SendFlags::NOSIGNAL))?)
}

/// Receives bytes, and the descriptors that came with them. Zero bytes is the end.
pub fn receive(socket: impl AsFd, bytes: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(got.bytes)
}
