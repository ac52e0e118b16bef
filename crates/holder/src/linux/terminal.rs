//! Terminals and sockets, as far as the safe wrappers do not go.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::proc;

/// Gives up the terminal that this process was started on, so that a child of ours can have it for its own. Whoever
/// else was on it hears a hang-up; we do not.
pub(crate) fn leave(terminal: impl AsFd) -> io::Result<()> {
    // SAFETY: sets a disposition that needs no handler, and drops our controlling terminal.
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
        match libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCNOTTY) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Opens a terminal by its path, without it becoming ours.
pub fn open_terminal(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(path, flags, Mode::empty())?;
    if rustix::termios::isatty(&terminal) { Ok(terminal) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// How much of what was written to a socket its other side has not taken.
pub(crate) fn untaken(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: writes one integer.
    match unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } {
        0 => Ok(bytes as usize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the process that made the other side of a socket waits for something to do.
pub(crate) fn peer_waits(socket: impl AsFd) -> bool {
    let Ok(peer) = rustix::net::sockopt::socket_peercred(socket) else { return false };
    proc::stat(peer.pid.as_raw_nonzero().get()).is_ok_and(|stat| stat.state == b'S')
}
