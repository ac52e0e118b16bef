//! Runs a command on a pseudo-terminal for tests: types, reads, resizes.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::TEST_TIMEOUT;

/// A terminal with a command in it, as a user has it in front of them.
pub(crate) struct Pty {
    outer: OwnedFd,
    inner: OwnedFd,
    child: Child,
    seen: Vec<u8>,
}

impl Pty {
    /// Runs a command on a terminal of this size: columns and rows.
    pub(crate) fn spawn(mut command: Command, (cols, rows): (u16, u16)) -> Self {
        let outer =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&outer).expect("grantpt");
        unlockpt(&outer).expect("unlockpt");
        let name = ptsname(&outer, Vec::new()).expect("ptsname");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let inner = rustix::fs::open(&name, flags, Mode::empty()).expect("the terminal's other side");
        let stdio = || Stdio::from(inner.try_clone().expect("a duplicate"));
        let child = {
            set_size(&outer, cols, rows);
            command
                .env("TERM", "xterm")
                .stdin(stdio())
                .stdout(stdio())
                .stderr(stdio())
                .spawn()
                .expect("wharf runs")
        };
        Self { outer, inner, child, seen: Vec::new() }
    }

    /// Types.
    pub(crate) fn type_in(&self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(&self.outer, bytes).expect("the terminal takes input"), bytes.len());
    }

    /// Waits until this was shown, and gives everything that was shown so far.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        let begun = Instant::now();
        while !self.shown().contains(text) {
            let shown = self.shown();
            assert!(begun.elapsed() < TEST_TIMEOUT, "{text:?} was never shown, but {shown:?}");
            self.take(Duration::from_millis(100));
        }
        self.shown()
    }

    /// Takes in what is shown now, and waits for nothing.
    pub(crate) fn take_in(&mut self) {
        self.take(Duration::ZERO);
    }

    /// Everything that was shown so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Forgets what was shown.
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
    }

    /// Changes the size. The command is told, as a terminal's own process group would be.
    pub(crate) fn resize(&self, cols: u16, rows: u16) {
        set_size(&self.outer, cols, rows);
        self.signal(Signal::WINCH);
    }

    /// Sends the command a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the command lives");
    }

    /// Whether the terminal is in the mode in which a shell would read a line.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.inner).expect("the terminal's modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Types more than the terminal takes at once, while what it shows is read.
    #[track_caller]
    pub(crate) fn type_all(&mut self, mut bytes: &[u8]) {
        let begun = Instant::now();
        while !bytes.is_empty() {
            let mut fds = [PollFd::new(&self.outer, PollFlags::OUT)];
            let time = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            if matches!(poll(&mut fds, Some(&time)), Ok(1..)) {
                // Never more than it has room for: the write would block.
                let piece = &bytes[..bytes.len().min(256)];
                let count = rustix::io::write(&self.outer, piece).expect("the terminal takes input");
                bytes = &bytes[count..];
            }
            self.take(Duration::ZERO);
            assert!(begun.elapsed() < TEST_TIMEOUT, "the terminal takes no input any more");
        }
    }

    /// The terminal's modes and special characters, to be compared.
    pub(crate) fn modes(&self) -> String {
        format!("{:?}", tcgetattr(&self.inner).expect("the terminal's modes"))
    }

    /// Waits for the command's end, and gives its code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> i32 {
        let begun = Instant::now();
        loop {
            self.take(Duration::from_millis(20));
            if let Some(status) = self.child.try_wait().expect("the command is ours") {
                self.take(Duration::ZERO);
                return status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            }
            assert!(begun.elapsed() < TEST_TIMEOUT, "the command does not end; it showed {:?}", self.shown());
        }
    }

    fn take(&mut self, wait: Duration) {
        let mut timeout = wait;
        loop {
            let mut fds = [PollFd::new(&self.outer, PollFlags::IN)];
            let time = Timespec { tv_sec: 0, tv_nsec: i64::from(timeout.subsec_nanos()) };
            if !matches!(poll(&mut fds, Some(&time)), Ok(1..)) {
                return;
            }
            let mut buffer = [0; 16 << 10];
            match rustix::io::read(&self.outer, &mut buffer) {
                Ok(count @ 1..) => self.seen.extend_from_slice(&buffer[..count]),
                _ => return,
            }
            timeout = Duration::ZERO;
        }
    }
}

fn set_size(outer: &OwnedFd, cols: u16, rows: u16) {
    tcsetwinsize(outer, Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
