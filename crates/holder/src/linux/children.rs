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

/// Whether a wait status says that it was stopped.
pub(crate) fn is_stopped(status: i32) -> bool {
    libc::WIFSTOPPED(status)
}

/// Whether a wait status says that it was stopped or goes on, and not that it ended.
pub(crate) fn lives(status: i32) -> bool {
    libc::WIFSTOPPED(status) || libc::WIFCONTINUED(status)
}

/// The next child that has ended, was stopped or goes on: pid and wait status.
pub(crate) fn next_change() -> Option<(i32, i32)> {
    let mut status = 0;
    let options = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    // SAFETY: does not block, and writes one integer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, options) };
    (pid > 0).then_some((pid, status))
}

/// The next child that has ended: pid and wait status.
pub(crate) fn wait_any() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: does not block, and writes one integer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// The next child that has ended, which stays to be reaped.
pub(crate) fn next_ended() -> Option<i32> {
    // SAFETY: does not block, reaps nothing, and writes to a struct of our own, whose pid is set where a child was found.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let found =
            libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0;
        let pid = if found { info.si_pid() } else { 0 };
        (pid > 0).then_some(pid)
    }
}

/// Reaps a child that has ended: its wait status.
pub(crate) fn status_of(pid: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: does not block, and writes one integer.
    (unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid).then_some(status)
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
