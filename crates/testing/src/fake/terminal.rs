//! Puts the fake agent's terminal into raw mode, reads from it, and restores it.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// What was found on standard input within a time.
pub(super) enum Found {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// The end of input.
    End,
}

/// The terminal of the agent, put back as it was at the end.
pub(super) struct Terminal {
    before: Option<Termios>,
}

impl Terminal {
    /// Takes the terminal, raw unless the agent is `cooked`.
    pub(super) fn take(cooked: bool) -> Result<Self, String> {
        let input = io::stdin();
        if cooked || !isatty(input.as_fd()) {
            return Ok(Self { before: None });
        }
        let say = |error| format!("cannot set the terminal's modes: {error}");
        let before = tcgetattr(input.as_fd()).map_err(say)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(input.as_fd(), OptionalActions::Now, &raw).map_err(say)?;
        Ok(Self { before: Some(before) })
    }

    /// Columns and rows.
    pub(super) fn size() -> (usize, usize) {
        match tcgetwinsize(io::stdout().as_fd()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    /// Reads at most `most` bytes, waiting for the first one no longer than `within`.
    pub(super) fn read(most: usize, within: Duration) -> Found {
        let input = io::stdin();
        let mut wanted = [PollFd::new(&input, PollFlags::IN)];
        let timeout = Timespec::try_from(within).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut wanted, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Found::Nothing,
            Ok(_) => {}
            Err(_) => return Found::End,
        }
        let mut bytes = vec![0; most];
        match rustix::io::read(&input, &mut bytes) {
            Ok(0) => Found::End,
            Ok(count) => {
                bytes.truncate(count);
                Found::Bytes(bytes)
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Found::Nothing,
            Err(_) => Found::End,
        }
    }

    /// Writes all of it. A terminal that is gone is noticed by the next read.
    pub(super) fn write(text: &str) {
        let mut out = io::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, before);
        }
    }
}
