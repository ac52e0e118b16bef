//! System calls that only an attacker needs.

#![expect(unsafe_code, reason = "no safe wrapper has these calls")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Types a byte at a terminal as if it were pressed there.
pub(super) fn push_key(terminal: BorrowedFd<'_>, key: u8) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel reads one byte.
    checked(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, &raw const key) })
}

/// Takes a process over, and lets it go again.
pub(super) fn trace(pid: i32) -> io::Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: no memory of ours is read or written.
    checked(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, none, none) } as i32)?;
    // SAFETY: as above.
    let _ = unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, none, none) };
    Ok(())
}

/// Whether a process may be signalled.
pub(super) fn may_signal(pid: i32) -> io::Result<()> {
    // SAFETY: signal 0 is none.
    checked(unsafe { libc::kill(pid, 0) })
}

/// A user namespace in which this process would have every capability. Asked in a child: it cannot be undone.
pub(super) fn own_users() -> io::Result<()> {
    // SAFETY: the child calls nothing but `unshare` and `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            let failed = libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
            libc::_exit(i32::from(failed != 0));
        }
    }
    checked(child)?;
    let mut status = 0;
    // SAFETY: the kernel writes one number.
    checked(unsafe { libc::waitpid(child, &raw mut status, 0) })?;
    if status == 0 { Ok(()) } else { Err(io::Error::other("refused")) }
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
