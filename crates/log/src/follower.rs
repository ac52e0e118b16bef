//! Waits for changes of a log, so that a reader need not poll.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::files::Files;
use crate::platform::Watch;

/// Waits until a log may have changed, or until its session may have ended.
///
/// It watches the log's directory, and the one above it for the exit record that appears there. It knows only
/// *that* something happened; what, the reader finds out.
///
/// No change is missed if things are done in this order:
///
/// 1. create the follower;
/// 2. read until [`Chunk::End`](crate::Chunk::End), and look for the exit record;
/// 3. [`wait`](Self::wait); then 2 again.
///
/// What happens between 1 and 3 is remembered, and makes the wait return at once. To be sure of all output
/// before an exit, look for the exit record *before* a read that ends in `End`: the holder writes it last.
///
/// Async code registers the descriptor ([`AsFd`](std::os::fd::AsFd), on Linux) and, when it is readable, calls
/// [`drain`](Self::drain) *before* step 2.
#[derive(Debug)]
pub struct Follower {
    watch: Watch,
}

impl Follower {
    /// Begins to watch the log in `dir`.
    pub fn new(dir: &Path) -> io::Result<Self> {
        Ok(Self { watch: Watch::new(&Files::open(dir)?)? })
    }

    /// Waits for a change, at most this long; whether something may have changed.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.watch.wait(timeout)
    }

    /// Takes note of the changes so far, without waiting; whether there were any.
    pub fn drain(&mut self) -> io::Result<bool> {
        self.watch.drain()
    }
}

#[cfg(target_os = "linux")]
impl std::os::fd::AsFd for Follower {
    /// A descriptor that is readable when something may have changed.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

#[cfg(target_os = "linux")]
impl std::os::fd::AsRawFd for Follower {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        std::os::fd::AsFd::as_fd(self).as_raw_fd()
    }
}
