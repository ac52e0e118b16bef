use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

/// Sees to what the rest relies on: standard descriptors that are open, so that no file of ours gets one of their
/// numbers, and a write to somebody who is gone that is an error and not our end.
pub(crate) fn prepare() {
    // SAFETY: asks about three numbers, opens a file that every system has, and sets a disposition without a handler.
    unsafe {
        let mut standard = [0, 1, 2].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
        let asked = libc::poll(standard.as_mut_ptr(), 3, 0) >= 0;
        for entry in standard.iter().filter(|entry| asked && entry.revents & libc::POLLNVAL != 0) {
            // The lowest number that is free is the one that is missing.
            if libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) != entry.fd {
                libc::abort();
            }
        }
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

/// The words of the command line.
///
/// # Safety
///
/// They are as the C library gives them to `main`.
pub(crate) unsafe fn arguments(count: c_int, words: *const *const c_char) -> Vec<OsString> {
    // SAFETY: there are that many, and each ends with a NUL.
    let word = |at| unsafe { CStr::from_ptr(*words.add(at)) };
    (0..count as usize).map(|at| OsStr::from_bytes(word(at).to_bytes()).to_owned()).collect()
}
