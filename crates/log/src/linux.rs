//! What Linux does better: moving bytes inside the kernel, and being told of changes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice as splice_call};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::files::Files;
use crate::segment::named;

/// How often we look where the kernel cannot tell us.
const POLL_NANOS: i64 = 100_000_000;

/// How many times 4 KiB of changes are taken note of at once.
const MAX_DRAINS: u32 = 64;

/// Moves bytes from a pipe to a place in a file, without waiting; none where that cannot be done.
pub(crate) fn splice(pipe: BorrowedFd<'_>, log: &File, at: u64, len: usize) -> io::Result<Option<usize>> {
    let mut at = at;
    loop {
        match splice_call(pipe, None, log, Some(&mut at), len, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
            Ok(moved) => return Ok(Some(moved)),
            Err(Errno::INTR) => {}
            // The file system has no splice, or the source is not a pipe.
            Err(Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A descriptor that becomes readable when the directory, or the one above it, changes.
#[derive(Debug)]
pub(crate) struct Watch {
    fd: OwnedFd,
}

impl Watch {
    pub(crate) fn new(files: &Files) -> io::Result<Self> {
        let fd = match watch(files) {
            Ok(fd) => fd,
            // A user may have only so many watches (128 by default on many systems). Late is better than never:
            // a timer says "something may have changed" ten times a second.
            Err(Errno::MFILE | Errno::NOSPC | Errno::NOMEM | Errno::NOSYS) => timer()?,
            Err(error) => return Err(named("watch", files.path(), &error.into())),
        };
        Ok(Self { fd })
    }

    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => Ok(false),
            Ok(_) => self.drain(),
            // A signal may well be the change that the caller is waiting for.
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn drain(&mut self) -> io::Result<bool> {
        let mut events = [0; 4096];
        let mut any = false;
        // Who makes changes faster than they are read is heard again at the next turn.
        for _ in 0..MAX_DRAINS {
            match rustix::io::read(&self.fd, &mut events) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(any),
                Ok(_) => any = true,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(any)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn watch(files: &Files) -> rustix::io::Result<OwnedFd> {
    let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let came = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
    // The very directory that is read, and not what has its name by now.
    let dir = files.dir();
    let held = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
    inotify::add_watch(&fd, held, came | WatchFlags::MODIFY | WatchFlags::DELETE_SELF)?;
    if let Some(parent) = files.path().parent() {
        inotify::add_watch(&fd, parent, came | WatchFlags::DELETE)?;
    }
    Ok(fd)
}

fn timer() -> rustix::io::Result<OwnedFd> {
    let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let every = Timespec { tv_sec: 0, tv_nsec: POLL_NANOS };
    timerfd_settime(&fd, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: every, it_value: every })?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_watches_a_timer_wakes() {
        let mut watch = Watch { fd: timer().unwrap() };
        assert!(!watch.drain().unwrap());
        assert!(watch.wait(Duration::from_secs(10)).unwrap());
        assert!(watch.wait(Duration::from_secs(10)).unwrap());
    }

    #[test]
    fn what_is_not_there_cannot_be_watched() {
        let error = Files::open(std::path::Path::new("/nowhere/log")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/nowhere/log"), "{error}");
    }
}
