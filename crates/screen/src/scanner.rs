//! Splits terminal output into text and whole sequences, however it is cut into pieces.
//!
//! The parser under the grid keeps an unfinished string without a limit, drops a character where a read ends
//! within the one before it, and cannot be stored. So it is only ever given whole sequences, and what is
//! unfinished waits here: bounded, and part of a checkpoint.

use std::str;

use memchr::memchr;
use serde::{Deserialize, Serialize};

/// The longest control sequence that means anything.
const MAX_SEQUENCE_LEN: usize = 512;
/// The longest string that is looked at; of a longer one nothing is kept.
const MAX_STRING_LEN: usize = 64 << 10;
/// The same for device control strings, of which only short questions matter.
const MAX_DEVICE_STRING_LEN: usize = 4 << 10;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

/// Takes what the scanner found. `at` is the index, within the piece just fed, of the byte that completed it.
pub(crate) trait Sink {
    /// Text and control characters without `ESC`; here `at` is the index of the first byte.
    fn text(&mut self, bytes: &[u8], at: usize);
    /// `ESC`, intermediates, final: without the `ESC`.
    fn escape(&mut self, body: &[u8], at: usize);
    /// A control sequence, with its introducer `ESC [`.
    fn csi(&mut self, whole: &[u8], at: usize);
    /// What stood between `ESC ]` and its end; `bell` when that was `BEL`.
    fn osc(&mut self, body: &[u8], bell: bool, at: usize);
    /// What stood between `ESC P` and its end.
    fn dcs(&mut self, body: &[u8], at: usize);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
enum State {
    #[default]
    Ground,
    Escape,
    Csi,
    /// A control sequence that grew too long.
    CsiDropped,
    Osc,
    Dcs,
    /// A string of which nothing is kept; `BEL` ends it where it began as an operating system command.
    Dropped {
        bell: bool,
    },
}

/// The state machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scanner {
    state: State,
    /// The unfinished sequence, or the first bytes of an unfinished character.
    held: Vec<u8>,
}

impl Scanner {
    // Inlined, it costs half a percent more for every sequence.
    #[inline(never)]
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut at = 0;
        while at < bytes.len() {
            if self.state == State::Ground {
                at += self.ground(&bytes[at..], at, sink);
            } else if self.byte(bytes[at], at, sink) {
                at += 1;
            }
        }
    }

    /// Whether nothing is unfinished.
    pub(crate) fn rests(&self) -> bool {
        self.state == State::Ground && self.held.is_empty()
    }

    /// The bytes of what is unfinished, or such as have the same effect.
    pub(crate) fn unfinished(&self) -> Vec<u8> {
        let introducer: &[u8] = match self.state {
            State::Ground | State::Csi => b"",
            State::Escape => b"\x1b",
            // A parameter after an intermediate: none that means anything.
            State::CsiDropped => return b"\x1b[ 0".to_vec(),
            State::Osc => b"\x1b]",
            State::Dcs => b"\x1bP",
            // No command has this number.
            State::Dropped { bell: true } => b"\x1b]-;",
            State::Dropped { bell: false } => b"\x1b_",
        };
        [introducer, &self.held].concat()
    }

    fn ground(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        if !self.held.is_empty() {
            return self.join(bytes[0], at, sink);
        }
        let escape = memchr(ESC, bytes);
        let run = &bytes[..escape.unwrap_or(bytes.len())];
        let whole = if escape.is_some() { run.len() } else { run.len() - unfinished(run) };
        if whole > 0 {
            sink.text(&run[..whole], at);
        }
        if escape.is_some() {
            self.begin(State::Escape, &[]);
            run.len() + 1
        } else {
            self.held.extend_from_slice(&run[whole..]);
            bytes.len()
        }
    }

    /// Adds a byte to an unfinished character; how many bytes were used.
    fn join(&mut self, byte: u8, at: usize, sink: &mut impl Sink) -> usize {
        self.held.push(byte);
        match str::from_utf8(&self.held) {
            Ok(_) => {
                sink.text(&self.held, at);
                self.held.clear();
                1
            }
            Err(error) if error.error_len().is_none() => 1,
            Err(_) => {
                self.held.pop();
                sink.text(&self.held, at);
                self.held.clear();
                0
            }
        }
    }

    fn begin(&mut self, state: State, held: &[u8]) {
        self.state = state;
        self.held.clear();
        self.held.extend_from_slice(held);
    }

    fn ground_state(&mut self) {
        self.begin(State::Ground, &[]);
        // A long string must not keep its memory for the rest of the session.
        if self.held.capacity() > MAX_SEQUENCE_LEN {
            self.held = Vec::new();
        }
    }

    /// One byte of a sequence; whether it was used.
    fn byte(&mut self, byte: u8, at: usize, sink: &mut impl Sink) -> bool {
        match byte {
            ESC => {
                self.end(false, at, sink);
                self.begin(State::Escape, &[]);
            }
            CAN | SUB => self.ground_state(),
            _ => match self.state {
                State::Ground => return false,
                State::Escape => return self.escape(byte, at, sink),
                State::Csi | State::CsiDropped => self.csi(byte, at, sink),
                State::Osc | State::Dropped { bell: true } if byte == BEL => {
                    self.end(true, at, sink);
                    self.ground_state();
                }
                State::Osc => self.string(byte, MAX_STRING_LEN, true),
                State::Dcs => self.string(byte, MAX_DEVICE_STRING_LEN, false),
                State::Dropped { .. } => {}
            },
        }
        true
    }

    /// The end of a string.
    fn end(&mut self, bell: bool, at: usize, sink: &mut impl Sink) {
        match self.state {
            State::Osc => sink.osc(&self.held, bell, at),
            State::Dcs => sink.dcs(&self.held, at),
            _ => {}
        }
    }

    fn string(&mut self, byte: u8, longest: usize, bell: bool) {
        if self.held.len() >= longest {
            self.held = Vec::new();
            self.state = State::Dropped { bell };
        } else if byte >= 0x20 {
            self.held.push(byte);
        }
    }

    fn escape(&mut self, byte: u8, at: usize, sink: &mut impl Sink) -> bool {
        let first = self.held.is_empty();
        match byte {
            0..=0x1f => sink.text(&[byte], at),
            b'[' if first => self.begin(State::Csi, b"\x1b["),
            b']' if first => self.begin(State::Osc, &[]),
            b'P' if first => self.begin(State::Dcs, &[]),
            // The title as screen and tmux are told it: a string as well.
            b'k' if first => self.begin(State::Osc, b"2;"),
            b'X' | b'^' | b'_' if first => self.begin(State::Dropped { bell: false }, &[]),
            0x20..=0x2f => {
                if self.held.len() < MAX_SEQUENCE_LEN {
                    self.held.push(byte);
                }
            }
            0x30..=0x7e => {
                self.held.push(byte);
                sink.escape(&self.held, at);
                self.ground_state();
            }
            0x7f => {}
            _ => {
                self.ground_state();
                return false;
            }
        }
        true
    }

    fn csi(&mut self, byte: u8, at: usize, sink: &mut impl Sink) {
        match byte {
            // A control within a sequence acts at once.
            0..=0x1f => sink.text(&[byte], at),
            0x20..=0x3f if self.held.len() < MAX_SEQUENCE_LEN => self.held.push(byte),
            0x20..=0x3f => self.state = State::CsiDropped,
            0x40..=0x7e => {
                if self.state == State::Csi {
                    self.held.push(byte);
                    sink.csi(&self.held, at);
                }
                self.ground_state();
            }
            _ => {}
        }
    }
}

/// How many bytes at the end are the start of a character that may still become whole.
fn unfinished(run: &[u8]) -> usize {
    for back in 1..=run.len().min(3) {
        let tail = &run[run.len() - back..];
        match tail[0] {
            0x80..=0xbf => {}
            0xc2..=0xf4 => {
                let open = str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
                return if open { back } else { 0 };
            }
            _ => return 0,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Debug, PartialEq, Eq)]
    struct Heard(Vec<String>, Vec<u8>);

    impl Sink for Heard {
        fn text(&mut self, bytes: &[u8], _: usize) {
            self.1.extend_from_slice(bytes);
        }
        fn escape(&mut self, body: &[u8], _: usize) {
            self.0.push(format!("esc {}", String::from_utf8_lossy(body)));
        }
        fn csi(&mut self, whole: &[u8], _: usize) {
            self.0.push(format!("csi {}", String::from_utf8_lossy(&whole[2..])));
        }
        fn osc(&mut self, body: &[u8], bell: bool, _: usize) {
            self.0.push(format!("osc {} {bell}", String::from_utf8_lossy(body)));
        }
        fn dcs(&mut self, body: &[u8], _: usize) {
            self.0.push(format!("dcs {}", String::from_utf8_lossy(body)));
        }
    }

    fn heard(pieces: &[&[u8]]) -> Heard {
        let mut scanner = Scanner::default();
        let mut heard = Heard::default();
        for piece in pieces {
            scanner.feed(piece, &mut heard);
        }
        heard
    }

    #[test]
    fn sequences_come_whole_however_they_are_cut() {
        let bytes = "a\x1b[1;2Hé漢\x1b]0;t\x07b\x1b]2;u\x1b\\\x1bP$qm\x1b\\\x1b(0\x1b_x\x1b\\c😀".as_bytes();
        let whole = heard(&[bytes]);
        assert_eq!(
            whole.0,
            ["csi 1;2H", "osc 0;t true", "osc 2;u false", "esc \\", "dcs $qm", "esc \\", "esc (0", "esc \\"]
        );
        assert_eq!(whole.1, "aé漢bc😀".as_bytes());
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(heard(&single), whole);
        for at in 0..bytes.len() {
            assert_eq!(heard(&[&bytes[..at], &bytes[at..]]), whole);
        }
    }

    #[test]
    fn an_endless_string_costs_bounded_memory() {
        for introducer in [b"\x1b]0;".as_slice(), b"\x1bPq", b"\x1b_G", b"\x1b["] {
            let mut scanner = Scanner::default();
            let mut sink = Heard::default();
            scanner.feed(introducer, &mut sink);
            for _ in 0..200 {
                scanner.feed(&b";".repeat(64 << 10), &mut sink);
                assert!(scanner.held.capacity() <= 2 * MAX_STRING_LEN, "{}", scanner.held.capacity());
            }
            scanner.feed(b"\x1b\\m\x1b[5n", &mut sink);
            assert_eq!(sink.0.last().map(String::as_str), Some("csi 5n"), "what follows is heard");
            assert!(!sink.0.iter().any(|heard| heard.starts_with("osc") || heard.starts_with("dcs")));
        }
    }

    #[test]
    fn broken_characters_do_not_swallow_what_follows() {
        assert_eq!(heard(&[b"\xe2\x82", b"x"]).1, b"\xe2\x82x");
        assert_eq!(heard(&[b"\xc3", b"\xa9A\xe2"]).1, b"\xc3\xa9A");
        assert_eq!(heard(&[b"\xf0\x9f", b"\x1b[m"]).1, b"\xf0\x9f");
    }
}
