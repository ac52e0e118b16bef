//! News of kills for want of memory in a session's cgroups.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::EventfdFlags;

/// What tells of kills in one cgroup.
pub(crate) enum MemoryNews {
    /// The counters of version 2, which are urgent when they change, and until they are read.
    Counters(File),
    /// A descriptor that version 1 tells when memory runs out, a moment before anything is killed.
    Notice(OwnedFd),
}

impl MemoryNews {
    /// News of the cgroup in a directory; none where it does not count memory, or does not tell.
    pub(crate) fn of(dir: &Path) -> Option<Self> {
        if let Ok(file) = File::open(dir.join("memory.events")) {
            let news = Self::Counters(file);
            // What was there before is no news.
            news.take();
            return Some(news);
        }
        let counters = File::open(dir.join("memory.oom_control")).ok()?;
        let notice = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        let words = format!("{} {}", notice.as_raw_fd(), counters.as_raw_fd());
        fs::write(dir.join("cgroup.event_control"), words).ok()?;
        Some(Self::Notice(notice))
    }

    /// Whether it tells by being urgent and not by being readable.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Counters(_))
    }

    /// Takes what was told, so that it is told anew.
    pub(crate) fn take(&self) {
        let _: io::Result<usize> = match self {
            Self::Counters(file) => {
                let mut file: &File = file;
                file.seek(SeekFrom::Start(0)).and_then(|_| file.read(&mut [0; 512]))
            }
            Self::Notice(notice) => rustix::io::read(notice, &mut [0_u8; 8]).map_err(Into::into),
        };
    }
}

impl AsFd for MemoryNews {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Counters(file) => file.as_fd(),
            Self::Notice(notice) => notice.as_fd(),
        }
    }
}
