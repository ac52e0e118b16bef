//! What the daemon sets up in its own process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of descriptors to the hard one: the daemon has some for every session.
///
/// Returns the old soft limit. Sessions must get it back: programs that use `select`, or that close every
/// descriptor up to the limit, fail with a large one.
pub(crate) fn raise_descriptor_limit() -> Option<u64> {
    let old = getrlimit(Resource::Nofile);
    if let Err(errno) = setrlimit(Resource::Nofile, Rlimit { current: old.maximum, maximum: old.maximum }) {
        tracing::warn!("cannot raise the limit of descriptors: {errno}");
    }
    old.current
}

/// Makes signals mean what the daemon expects, whatever its starter had set.
pub(crate) fn reset_signals() -> io::Result<()> {
    // SAFETY: `set` is initialised by sigemptyset before it is read, and both calls only change this process's
    // signal settings, before any other thread runs.
    #[expect(unsafe_code, reason = "the C library alone can set these")]
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) != 0
            || libc::signal(libc::SIGPIPE, libc::SIG_IGN) == libc::SIG_ERR
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
