//! Sockets below a held directory: connected without waiting, never through a link.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use crate::dir::{Dir, Kind};
use crate::platform::{self, NAME_ONLY};

/// How long to wait before a full backlog is tried again: the kernel tells nobody when there is room.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Whether a socket, and what is accepted on it, takes descriptors that the other end sends. What is not taken the kernel
/// refuses to send, where it can (Linux 6.16): we would have to close it, and to close a foreign socket takes as long as its
/// owner wishes.
pub fn take_descriptors(socket: impl AsFd, take: bool) {
    platform::take_descriptors(socket, take);
}

impl Dir {
    /// Connects to a socket, or fails at once: `WouldBlock` where the other side has no room for a connection now. The
    /// stream does not block either, and takes no descriptors: see [`take_descriptors`].
    pub fn connect_now(&self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        let path = path.as_ref();
        let found = self.resolve(path, NAME_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
        let kind = Kind::of(&found)?;
        if kind != Kind::Socket {
            let what = format!("{} is {} and not a socket", path.display(), kind.noun());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        // The very socket that was looked at, however long its path is and whatever has its name by now.
        let address = SocketAddrUnix::new(platform::path_of(&found))?;
        let socket = platform::stream_socket()?;
        take_descriptors(&socket, false);
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => return Ok(socket.into()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Connects to a socket before a deadline. The stream blocks, as a new one does, and takes no descriptors.
    pub fn connect(&self, path: impl AsRef<Path>, within: Duration) -> io::Result<UnixStream> {
        let deadline = Instant::now() + within;
        loop {
            match self.connect_now(path.as_ref()) {
                Ok(stream) => {
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        let what = format!("{} accepts no connection", path.as_ref().display());
                        return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                    }
                    std::thread::sleep(RETRY_INTERVAL.min(left));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::net::{AddressFamily, SocketType};

    use super::*;

    #[test]
    fn a_link_to_a_socket_is_no_socket() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("room")).unwrap();
        let victim = UnixListener::bind(home.path().join("victim")).unwrap();
        victim.set_nonblocking(true).unwrap();
        symlink("../victim", home.path().join("room/sock")).unwrap();
        symlink(".", home.path().join("room/again")).unwrap();
        fs::write(home.path().join("room/file"), "").unwrap();
        let dir = Dir::open(home.path()).unwrap();
        for path in ["room/sock", "room/file", "room/again/sock", "room/../../x"] {
            let error = dir.connect(path, Duration::from_secs(1)).unwrap_err();
            assert!(crate::is_hostile(&error), "{path}: {error:?}");
        }
        assert_eq!(victim.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "somebody came");
        dir.connect("victim", Duration::from_secs(1)).unwrap();
    }

    #[test]
    fn descriptors_are_taken_only_where_they_are_wanted() {
        let home = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(home.path().join("sock")).unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let ours = dir.connect("sock", Duration::from_secs(10)).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        if !are_refused() {
            return;
        }
        assert_eq!(send_descriptor(&theirs), Err(Errno::PERM), "before the peer is proven");
        take_descriptors(&ours, true);
        send_descriptor(&theirs).unwrap();
        // One who is accepted is like the listener.
        take_descriptors(&listener, false);
        let caller = dir.connect("sock", Duration::from_secs(10)).unwrap();
        assert_eq!(send_descriptor(&caller), Err(Errno::PERM), "before it is accepted");
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(send_descriptor(&caller), Err(Errno::PERM));
        take_descriptors(&accepted, true);
        send_descriptor(&caller).unwrap();
    }

    /// Whether this kernel refuses to send what is not taken. Where it must, a test fails that finds otherwise.
    pub(crate) fn are_refused() -> bool {
        let (one, other) = UnixStream::pair().unwrap();
        take_descriptors(&other, false);
        let refused = send_descriptor(&one) == Err(Errno::PERM) || std::env::var_os("CI").is_some();
        if !refused {
            eprintln!("left out: this kernel refuses no descriptors (Linux 6.16 does)");
        }
        refused
    }

    pub(crate) fn send_descriptor(socket: impl AsFd) -> Result<(), Errno> {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = [socket.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&passed));
        sendmsg(&socket, &[io::IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL).map(drop)
    }

    #[test]
    fn a_full_backlog_is_waited_for_no_longer_than_said() {
        let home = tempfile::tempdir().unwrap();
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(home.path().join("sock")).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let mut kept = Vec::new();
        let begun = Instant::now();
        let error = loop {
            match dir.connect("sock", Duration::from_millis(100)) {
                Ok(stream) => kept.push(stream),
                Err(error) => break error,
            }
            assert!(kept.len() < 100, "the backlog has no end");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
