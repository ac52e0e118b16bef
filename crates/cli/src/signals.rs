//! Signals as numbers, as names, and as something to wait for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};

const NAMES: &[(&str, i32)] = &[
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("SYS", libc::SIGSYS),
];

/// Reads `TERM`, `SIGTERM`, `term`, `15`.
pub(crate) fn number(word: &str) -> Option<i32> {
    if let Ok(number) = word.parse() {
        return (1..=64).contains(&number).then_some(number);
    }
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// Where the handler writes; below zero while nobody listens.
static LISTENER: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note(signal: libc::c_int) {
    let byte = signal as u8;
    let fd = LISTENER.load(Ordering::Relaxed);
    // SAFETY: write and errno are async-signal-safe; the pipe lives as long as the handler is installed, does not
    // block, and a full one has woken the reader already.
    #[expect(unsafe_code, reason = "a signal handler")]
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(fd, (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// Catches signals: each becomes a byte in a pipe, which can be polled. The old handling comes back when dropped.
pub(crate) struct Signals {
    read: OwnedFd,
    _write: OwnedFd,
    caught: Vec<(i32, libc::sigaction)>,
}

impl Signals {
    pub(crate) fn catch(signals: &[i32]) -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        LISTENER.store(write.as_raw_fd(), Ordering::Relaxed);
        let mut caught = Vec::new();
        for &signal in signals {
            // SAFETY: all-zero bytes are a valid sigaction, both pointers are valid for the call, and the handler
            // does only what is async-signal-safe. No SA_RESTART: a write that blocks must wake up.
            #[expect(unsafe_code, reason = "the standard library has no sigaction")]
            let old = unsafe {
                let mut new: libc::sigaction = std::mem::zeroed();
                let mut old: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = note as *const () as usize;
                if libc::sigaction(signal, &raw const new, &raw mut old) != 0 {
                    return Err(io::Error::last_os_error());
                }
                old
            };
            caught.push((signal, old));
        }
        Ok(Self { read, _write: write, caught })
    }

    /// The signals that came since the last call.
    pub(crate) fn take(&self) -> Vec<i32> {
        let mut bytes = [0; 64];
        let count = rustix::io::read(&self.read, &mut bytes).unwrap_or(0);
        bytes[..count].iter().map(|byte| i32::from(*byte)).collect()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in &self.caught {
            // SAFETY: `old` is what sigaction gave for this signal.
            #[expect(unsafe_code, reason = "the standard library has no sigaction")]
            unsafe {
                libc::sigaction(*signal, old, std::ptr::null_mut());
            }
        }
        LISTENER.store(-1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (word, signal) in
            [("TERM", 15), ("SIGTERM", 15), ("sigint", 2), ("9", 9), ("usr1", 10), ("64", 64)]
        {
            assert_eq!(number(word), Some(signal), "{word}");
        }
        for bad in ["", "0", "65", "-9", "SIG", "NOPE", "15x"] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_caught_signal_can_be_polled() {
        let signals = Signals::catch(&[libc::SIGURG]).unwrap();
        assert_eq!(signals.take(), Vec::<i32>::new());
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::URG).unwrap();
        let mut polled = [rustix::event::PollFd::new(&signals, rustix::event::PollFlags::IN)];
        let timeout = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
        while rustix::event::poll(&mut polled, Some(&timeout)) == Err(rustix::io::Errno::INTR) {}
        assert_eq!(signals.take(), [libc::SIGURG]);
    }
}
