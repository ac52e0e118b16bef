//! The way of output: from the holder to standard output and error.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use wharf_model::Offset;

use crate::replay::Replay;
use crate::terminal::Modes;

/// What a write takes at most: less than what blocks for long when the reader is slow.
const MAX_WRITE_LEN: usize = 4096;

/// Where output goes.
pub(super) struct Screen {
    /// Output before this is old.
    border: Offset,
    /// The next byte that is wanted.
    next: Offset,
    /// Present where standard output is a terminal, which would answer old questions.
    replay: Option<Replay>,
    modes: Option<Modes>,
    out: Waiting,
    err: Waiting,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    written: usize,
}

impl Screen {
    /// Output from `from` on, of which what lies before `border` is old.
    pub(super) fn new(from: Offset, border: Offset) -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            border,
            next: from,
            replay: terminal.then(Replay::new),
            modes: terminal.then(Modes::new),
            out: Waiting::default(),
            err: Waiting::default(),
        }
    }

    /// The next byte that is wanted.
    pub(super) fn next(&self) -> Offset {
        self.next
    }

    /// Takes output in. What was seen already is passed over.
    pub(super) fn take(&mut self, offset: Offset, stderr: bool, bytes: &[u8]) {
        let seen = (self.next - offset) as usize;
        let Some(fresh) = bytes.get(seen..).filter(|fresh| !fresh.is_empty()) else { return };
        let from = offset + seen as u64;
        self.next = from + fresh.len() as u64;
        if stderr {
            self.err.bytes.extend_from_slice(fresh);
            return;
        }
        let start = self.out.bytes.len();
        match &mut self.replay {
            Some(replay) => {
                let old = fresh.len().min((self.border - from) as usize);
                if old > 0 {
                    replay.old(&fresh[..old], &mut self.out.bytes);
                }
                if self.next >= self.border {
                    replay.live(&fresh[old..], &mut self.out.bytes);
                }
            }
            None => self.out.bytes.extend_from_slice(fresh),
        }
        if let Some(modes) = &mut self.modes {
            modes.shown(&self.out.bytes[start..]);
        }
    }

    /// Shows what stands for all output before the first.
    pub(super) fn paint(&mut self, bytes: &[u8]) {
        self.out.bytes.extend_from_slice(bytes);
        if let Some(modes) = &mut self.modes {
            modes.shown(bytes);
        }
    }

    /// Passes over output that is gone.
    pub(super) fn gap(&mut self, to: Offset) {
        self.next = self.next.max(to);
    }

    /// The descriptor that must take output before more is read.
    pub(super) fn blocked(&self) -> Option<BorrowedFd<'static>> {
        // Standard output and error live as long as the process.
        if !self.out.is_empty() {
            return Some(rustix::stdio::stdout());
        }
        (!self.err.is_empty()).then(rustix::stdio::stderr)
    }

    /// Writes a piece of what waits.
    pub(super) fn write(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return self.err.write(io::stderr().as_fd());
        }
        self.out.write(io::stdout().as_fd())
    }

    /// Writes all that waits.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.blocked().is_some() {
            self.write()?;
        }
        Ok(())
    }

    /// Brings the terminal back to where a shell expects it.
    pub(super) fn leave(&mut self) {
        if let Some(mut modes) = self.modes.take() {
            self.out = Waiting { bytes: modes.reset(), written: 0 };
            self.err = Waiting::default();
            while !self.out.is_empty() && self.out.write(io::stdout().as_fd()).is_ok() {}
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }

    fn write(&mut self, to: BorrowedFd<'_>) -> io::Result<()> {
        let rest = &self.bytes[self.written..];
        match rustix::io::write(to, &rest[..rest.len().min(MAX_WRITE_LEN)]) {
            Ok(count) => self.written += count,
            // A signal: whoever called looks at it.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        if self.is_empty() {
            self.bytes.clear();
            self.written = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_taken_once_whatever_comes_twice() {
        let mut screen = Screen::new(Offset(5), Offset(0));
        (screen.replay, screen.modes) = (None, None);
        screen.take(Offset(0), false, b"0123456");
        screen.take(Offset(6), false, b"678");
        screen.take(Offset(2), false, b"23");
        screen.take(Offset(9), true, b"err");
        screen.gap(Offset(20));
        screen.take(Offset(18), false, b"abcd");
        assert_eq!(screen.out.bytes, b"5678cd");
        assert_eq!(screen.err.bytes, b"err");
        assert_eq!(screen.next(), Offset(22));
    }

    #[test]
    fn the_border_divides_old_from_live() {
        let mut screen = Screen::new(Offset(0), Offset(5));
        (screen.replay, screen.modes) = (Some(Replay::new()), None);
        screen.take(Offset(0), false, b"\x1b[6nA\x1b[6nB");
        assert_eq!(screen.out.bytes, b"A\x1b[6nB");
    }
}
