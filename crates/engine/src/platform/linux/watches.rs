//! Watches many log directories for writes through one inotify descriptor.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// How many changes are taken note of at once.
const MAX_EVENTS: usize = 4_096;

/// Tells in which of many directories a file was written to, by one descriptor.
pub(crate) struct Watches(AsyncFd<OwnedFd>);

impl Watches {
    #[expect(unsafe_code, reason = "the runtime takes any descriptor on our word that it stays open")]
    pub(crate) fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // SAFETY: the descriptor is owned, and lives in the AsyncFd from here on.
        Ok(Self(unsafe { AsyncFd::register(fd)? }))
    }

    /// Watches a session's log; returns its number, or nothing where there is none.
    pub(crate) fn add(&self, dir: &Path) -> io::Result<Option<i32>> {
        let what = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::ONLYDIR;
        let held = match wharf_boundary::open_log(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            held => held?,
        };
        // The very directory that was opened, and not what a session puts in its place.
        let path = format!("/proc/self/fd/{}", held.as_fd().as_raw_fd());
        match inotify::add_watch(self.0.get_ref(), path, what) {
            Ok(number) => Ok(Some(number)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn remove(&self, number: i32) {
        // The kernel takes it away by itself when the directory goes.
        let _ = inotify::remove_watch(self.0.get_ref(), number);
    }

    /// Waits for a change, and returns the numbers of the directories that changed.
    pub(crate) async fn changed_dirs(&self) -> io::Result<Vec<i32>> {
        loop {
            let mut ready = self.0.readable().await?;
            let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
            let mut reader = inotify::Reader::new(self.0.get_ref().as_fd(), &mut buffer);
            let mut numbers = Vec::new();
            // Who makes changes faster than they are read is heard again at the next turn.
            for _ in 0..MAX_EVENTS {
                match reader.next() {
                    Ok(event) if numbers.contains(&event.wd()) => {}
                    Ok(event) => numbers.push(event.wd()),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        ready.clear_ready();
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if !numbers.is_empty() {
                return Ok(numbers);
            }
        }
    }
}
