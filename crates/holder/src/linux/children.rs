//! Our children, once they have ended.

use std::io;

/// What a wait status says: code, or signal.
pub(crate) fn decode(status: i32) -> (Option<i32>, Option<i32>) {
    if libc::WIFSIGNALED(status) {
        (None, Some(libc::WTERMSIG(status)))
    } else {
        (Some(libc::WEXITSTATUS(status)), None)
    }
}

/// The next child that has ended: pid and wait status.
pub(crate) fn wait_any() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: does not block, and writes one integer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Whether there is any child, ended or not.
pub(crate) fn has_children() -> bool {
    // SAFETY: does not block, reaps nothing, and writes to a struct of our own.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Waits for a child that is about to end.
pub(crate) fn reap(pid: i32) {
    let mut status = 0;
    // SAFETY: waits for a child that is about to end, and writes one integer.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}
