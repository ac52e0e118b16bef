//! Waiting for many things at once.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};

/// What happened to one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// Sources that are watched, each by a token.
pub(crate) struct Events {
    epoll: OwnedFd,
}

/// What to watch a source for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// To be told once of what comes and not as long as it is there: for whoever reads all there is each time.
    pub(crate) once: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self { read: true, write: false, once: false };
    pub(crate) const WRITE: Self = Self { read: false, write: true, once: false };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN | EventFlags::RDHUP, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags.set(EventFlags::ET, self.once);
        flags
    }
}

impl Events {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    pub(crate) fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), interest.flags())?)
    }

    /// Watches a source for what is urgent alone.
    pub(crate) fn add_urgent(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), EventFlags::PRI)?)
    }

    pub(crate) fn change(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token), interest.flags())?)
    }

    pub(crate) fn remove(&self, source: impl AsFd) {
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Waits until something happens, or until the deadline. A hang-up counts as both readable and writable.
    pub(crate) fn wait(&self, deadline: Option<Instant>, out: &mut Vec<Event>) -> io::Result<()> {
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); 16];
        let timeout = deadline.map(|deadline| {
            // Rounded up: waking a little early would only go round once more.
            let left = match deadline.saturating_duration_since(Instant::now()) {
                Duration::ZERO => Duration::ZERO,
                left => left + Duration::from_micros(999),
            };
            rustix::event::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        out.clear();
        let (events, _) = match epoll::wait(&self.epoll, &mut space, timeout.as_ref()) {
            Ok(found) => found,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        out.extend(events.iter().map(|event| {
            let flags = event.flags;
            let hung = flags.intersects(EventFlags::HUP | EventFlags::ERR);
            Event {
                token: event.data.u64(),
                readable: hung || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: hung || flags.contains(EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

/// A descriptor that is readable when a child ended or somebody asks us to go: SIGCHLD, SIGTERM, SIGINT, SIGHUP.
pub(crate) fn signals() -> io::Result<OwnedFd> {
    heard(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
}

/// A descriptor that is readable when a child ended.
pub(crate) fn ended_children() -> io::Result<OwnedFd> {
    heard(&[libc::SIGCHLD])
}

fn heard(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: a local signal set; the descriptor that comes back is new and ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The next signal that came.
pub(crate) fn next_signal(signals: &OwnedFd) -> Option<i32> {
    let mut info = [0_u8; std::mem::size_of::<libc::signalfd_siginfo>()];
    let got = rustix::io::read(signals, &mut info).ok()?;
    (got == info.len()).then(|| i32::from_le_bytes([info[0], info[1], info[2], info[3]]))
}
