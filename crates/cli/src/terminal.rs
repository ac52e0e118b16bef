//! The user's own terminal: its size, raw mode, and how it is left as it was found.

use std::os::fd::{AsFd, OwnedFd};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use wharf_model::Size;

use crate::filter::{Filter, Policy};

/// The size of the terminal behind a descriptor.
pub(crate) fn size(fd: impl AsFd) -> Option<Size> {
    let size = tcgetwinsize(fd).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size { cols: size.ws_col, rows: size.ws_row })
}

/// Raw mode for as long as this lives. Dropping it, also in a panic, brings the old mode back.
pub(crate) struct RawMode {
    terminal: OwnedFd,
    cooked: Termios,
}

impl RawMode {
    pub(crate) fn enter(terminal: impl AsFd) -> std::io::Result<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let cooked = tcgetattr(&terminal)?;
        let raw = Self { terminal, cooked };
        raw.again()?;
        Ok(raw)
    }

    /// Raw mode once more, after somebody else had the terminal.
    pub(crate) fn again(&self) -> std::io::Result<()> {
        let mut raw = self.cooked.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &raw)?)
    }

    /// The old mode.
    pub(crate) fn restore(&self) {
        // The terminal may be gone, and then there is nothing to restore.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.cooked);
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Notes which lasting modes an application has switched on, in order to switch off those and no others.
pub(crate) struct Modes(Filter<Noted>, Vec<u8>);

impl Modes {
    pub(crate) fn new() -> Self {
        Self(Filter::new(Noted::default()), Vec::new())
    }

    /// Takes note of output that was shown.
    pub(crate) fn shown(&mut self, bytes: &[u8]) {
        self.0.feed(bytes, &mut self.1);
        self.1.clear();
    }

    /// What brings a terminal back to where a shell expects it.
    pub(crate) fn reset(&mut self) -> Vec<u8> {
        let noted = std::mem::take(self.0.policy());
        // An unfinished string would swallow what follows.
        let mut bytes = b"\x18\x1b\\".to_vec();
        for _ in 0..noted.keyboards.min(16) {
            bytes.extend_from_slice(b"\x1b[<u");
        }
        if noted.other_keys {
            bytes.extend_from_slice(b"\x1b[>4m");
        }
        if noted.region {
            bytes.extend_from_slice(b"\x1b7\x1b[r\x1b8");
        }
        if let Some(mode) = noted.alternate {
            bytes.extend_from_slice(format!("\x1b[?{mode}l").as_bytes());
        }
        // Margins at the sides, mouse, focus, paste, size reports, synchronised output, cursor keys, keypad; wrapping and
        // cursor on.
        bytes.extend_from_slice(
            b"\x1b[?69l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l",
        );
        bytes.extend_from_slice(
            b"\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?2031l\x1b[?2048l\x1b[?1l\x1b>\x1b[?7h\x1b[?25h",
        );
        // Character set, colours, the cursor's shape.
        bytes.extend_from_slice(b"\x0f\x1b(B\x1b[0m\x1b[0 q");
        bytes
    }
}

#[derive(Debug, Default)]
struct Noted {
    alternate: Option<u16>,
    keyboards: u32,
    other_keys: bool,
    region: bool,
}

impl Policy for Noted {
    fn control(&mut self, _: u8, _: &mut Vec<u8>) {}
    fn text(&mut self, _: u8, _: &mut Vec<u8>) {}

    fn escape(&mut self, body: &[u8]) -> bool {
        // A full reset clears all of it.
        if body == b"c" {
            *self = Self::default();
        }
        false
    }

    fn csi(&mut self, body: &[u8]) -> bool {
        match body {
            [b'?', modes @ .., last @ (b'h' | b'l')] => {
                for mode in modes.split(|&byte| byte == b';') {
                    let mode = std::str::from_utf8(mode).ok().and_then(|mode| mode.parse().ok());
                    if let Some(mode @ (47 | 1047 | 1049)) = mode {
                        self.alternate = (*last == b'h').then_some(mode);
                    }
                }
            }
            [b'>', .., b'u'] => self.keyboards += 1,
            [b'<', count @ .., b'u'] => {
                let count = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok()).unwrap_or(1);
                self.keyboards = self.keyboards.saturating_sub(count);
            }
            [b'>', b'4', rest @ .., b'm'] => self.other_keys = !matches!(rest, b"" | b";0"),
            [parameters @ .., b'r']
                if parameters.iter().all(|byte| byte.is_ascii_digit() || *byte == b';') =>
            {
                self.region = !parameters.is_empty();
            }
            _ => {}
        }
        false
    }

    fn osc(&mut self, _: &[u8]) -> bool {
        false
    }
    fn dcs(&mut self, _: &[u8]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset_after(shown: &[u8]) -> String {
        let mut modes = Modes::new();
        modes.shown(shown);
        String::from_utf8(modes.reset()).unwrap()
    }

    #[test]
    fn only_what_is_on_is_switched_off() {
        let plain = reset_after(b"hello");
        assert!(!plain.contains("1049") && !plain.contains("<u") && !plain.contains("\x1b[r"));
        for always in ["\x1b[?25h", "\x1b[?2004l", "\x1b[?69l", "\x1b[?1006l", "\x1b[0m"] {
            assert!(plain.contains(always), "{always:?}");
        }
        let full = reset_after(b"\x1b[?1049;25h\x1b[>1u\x1b[>5u\x1b[<u\x1b[2;10r\x1b[>4;2m");
        for now in ["\x1b[?1049l", "\x1b[<u", "\x1b[r", "\x1b[>4m"] {
            assert_eq!(full.matches(now).count(), 1, "{now:?} in {full:?}");
        }
        assert!(!reset_after(b"\x1b[?1049h\x1b[?1049l").contains("1049"));
        assert!(!reset_after(b"\x1b[?1049h\x1bc").contains("1049"));
    }
}
