//! Splits terminal output into text, controls and sequences, however it is cut into pieces.

use std::mem;

/// The longest sequence that is looked at as a whole; a longer one is dropped.
const MAX_SEQUENCE_LEN: usize = 8 * 1024;
/// How much of an unfinished string is swallowed before it counts as text again.
const MAX_SKIPPED_LEN: usize = 64 * 1024;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

/// What a filter lets through.
pub(crate) trait Policy {
    /// A control character outside a string.
    fn control(&mut self, byte: u8, out: &mut Vec<u8>);
    /// One byte of text that is no control.
    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
    }
    /// `ESC`, intermediates, final: whether it passes.
    fn escape(&mut self, body: &[u8]) -> bool;
    /// The part after `CSI`, parameters to final byte: whether it passes.
    fn csi(&mut self, body: &[u8]) -> bool;
    /// The part between `OSC` and its end: whether it passes.
    fn osc(&mut self, body: &[u8]) -> bool;
    /// The part after `DCS` up to its final byte: whether the string passes.
    fn dcs(&mut self, header: &[u8]) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    /// After 0xc2: the next byte decides whether it is a control of the upper half.
    Upper,
    Escape,
    Csi,
    Osc,
    DcsHeader,
    /// A device control string that passes.
    Pass,
    /// A string that is dropped.
    Skip,
    /// A control sequence that grew too long.
    SkipCsi,
}

/// How many bytes follow this one in a character of UTF-8.
fn continuation_of(byte: u8) -> u8 {
    match byte {
        0xc3..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf4 => 3,
        _ => 0,
    }
}

/// The state machine; `P` decides.
pub(crate) struct Scanner<P> {
    policy: P,
    state: State,
    /// The sequence so far, with its introducer.
    held: Vec<u8>,
    /// Where in `held` the part after the introducer starts.
    body: usize,
    /// Continuation bytes that the current character still needs.
    continuation: u8,
    /// Inside a string: the byte before was `ESC`, or 0xc2.
    before: u8,
    skipped: usize,
}

impl<P: Policy> Scanner<P> {
    pub(crate) fn new(policy: P) -> Self {
        Self {
            policy,
            state: State::Ground,
            held: Vec::new(),
            body: 0,
            continuation: 0,
            before: 0,
            skipped: 0,
        }
    }

    pub(crate) fn policy(&mut self) -> &mut P {
        &mut self.policy
    }

    /// Whether a string is being dropped at this moment.
    pub(crate) fn skips(&self) -> bool {
        matches!(self.state, State::Skip | State::SkipCsi)
    }

    /// Filters a piece of output.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            self.byte(byte, out);
        }
    }

    /// Gives back what was held for a decision, as it came.
    pub(crate) fn release(&mut self, out: &mut Vec<u8>) {
        match self.state {
            State::Skip | State::SkipCsi => return,
            State::Pass if self.before != 0 => out.push(self.before),
            State::Upper => out.push(0xc2),
            State::Ground | State::Pass => {}
            State::Escape | State::Csi | State::Osc | State::DcsHeader => out.append(&mut self.held),
        }
        self.ground();
    }

    fn ground(&mut self) {
        self.state = State::Ground;
        self.held.clear();
        self.before = 0;
        self.skipped = 0;
        self.continuation = 0;
    }

    fn begin(&mut self, state: State, introducer: &[u8]) {
        self.ground();
        self.state = state;
        self.held.extend_from_slice(introducer);
        self.body = introducer.len();
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Ground => self.text(byte, out),
            State::Upper => {
                self.state = State::Ground;
                match byte {
                    0x80..=0x9f => self.upper(byte),
                    0xa0..=0xbf => {
                        self.policy.text(0xc2, out);
                        self.policy.text(byte, out);
                    }
                    // Half a character: what follows it must not make a whole one of it.
                    _ => self.text(byte, out),
                }
            }
            State::Escape => self.escape(byte, out),
            State::Csi | State::SkipCsi => self.csi(byte, out),
            State::DcsHeader => self.dcs(byte, out),
            State::Osc | State::Pass | State::Skip => self.string(byte, out),
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESC => self.begin(State::Escape, &[ESC]),
            0..=0x1f | 0x7f => {
                self.continuation = 0;
                self.policy.control(byte, out);
            }
            0x20..=0x7e => {
                self.continuation = 0;
                self.policy.text(byte, out);
            }
            0x80..=0xbf if self.continuation > 0 => {
                self.continuation -= 1;
                self.policy.text(byte, out);
            }
            // A control of the upper half as one byte: some terminals would act on it.
            0x80..=0x9f => {}
            0xc2 => {
                self.continuation = 0;
                self.state = State::Upper;
            }
            _ => {
                self.continuation = continuation_of(byte);
                self.policy.text(byte, out);
            }
        }
    }

    /// A control of the upper half, as two bytes of UTF-8.
    fn upper(&mut self, byte: u8) {
        match byte {
            0x9b => self.begin(State::Csi, &[0xc2, byte]),
            0x9d => self.begin(State::Osc, &[0xc2, byte]),
            0x90 => self.begin(State::DcsHeader, &[0xc2, byte]),
            0x98 | 0x9e | 0x9f => self.begin(State::Skip, &[]),
            _ => {}
        }
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESC => self.begin(State::Escape, &[ESC]),
            CAN | SUB => self.ground(),
            0..=0x1f | 0x7f => self.policy.control(byte, out),
            b'[' if self.held.len() == 1 => self.begin(State::Csi, b"\x1b["),
            b']' if self.held.len() == 1 => self.begin(State::Osc, b"\x1b]"),
            b'P' if self.held.len() == 1 => self.begin(State::DcsHeader, b"\x1bP"),
            b'X' | b'^' | b'_' if self.held.len() == 1 => self.begin(State::Skip, &[]),
            0x20..=0x2f if self.held.len() < 16 => self.held.push(byte),
            0x30..=0x7e => {
                self.held.push(byte);
                if self.policy.escape(&self.held[1..]) {
                    out.append(&mut self.held);
                }
                self.ground();
            }
            _ => {
                self.ground();
                self.byte(byte, out);
            }
        }
    }

    fn csi(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESC => self.begin(State::Escape, &[ESC]),
            CAN | SUB => self.ground(),
            0..=0x1f | 0x7f => self.policy.control(byte, out),
            0x20..=0x3f => self.hold(byte, State::SkipCsi),
            0x40..=0x7e => {
                if self.state == State::Csi {
                    self.held.push(byte);
                    if self.policy.csi(&self.held[self.body..]) {
                        out.append(&mut self.held);
                    }
                }
                self.ground();
            }
            _ => {
                self.ground();
                self.byte(byte, out);
            }
        }
    }

    fn hold(&mut self, byte: u8, otherwise: State) {
        if self.held.len() < MAX_SEQUENCE_LEN {
            self.held.push(byte);
        } else {
            self.state = otherwise;
            self.held.clear();
        }
    }

    fn dcs(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESC => {
                self.state = State::Skip;
                self.before = ESC;
            }
            CAN | SUB => self.ground(),
            0x20..=0x3f => self.hold(byte, State::Skip),
            0x40..=0x7e => {
                self.held.push(byte);
                if self.policy.dcs(&self.held[self.body..]) {
                    out.append(&mut self.held);
                    self.state = State::Pass;
                } else {
                    self.state = State::Skip;
                }
            }
            _ => {}
        }
    }

    /// A byte inside a string: its end is `BEL`, `ESC \`, or the same as one character.
    fn string(&mut self, byte: u8, out: &mut Vec<u8>) {
        let before = mem::take(&mut self.before);
        match (before, byte) {
            (ESC, b'\\') | (0xc2, 0x9c) => return self.end_of_string(&[before, byte], out),
            (ESC, _) => {
                // Anything else after ESC ends the string and starts a sequence.
                if self.state == State::Pass {
                    out.extend_from_slice(b"\x1b\\");
                }
                self.begin(State::Escape, &[ESC]);
                return self.escape(byte, out);
            }
            (0xc2, 0x80..=0x9f) => {
                // A control of the upper half does the same.
                if self.state == State::Pass {
                    out.extend_from_slice(b"\x1b\\");
                }
                self.ground();
                return self.upper(byte);
            }
            (0xc2, 0xa0..=0xbf) => {
                self.string_data(0xc2, out);
                self.continuation = 1;
            }
            // Half a character is dropped, as outside of strings.
            _ => {}
        }
        match byte {
            ESC | 0xc2 => self.before = byte,
            CAN | SUB => {
                if self.state == State::Pass {
                    out.push(byte);
                }
                self.ground();
            }
            BEL => self.end_of_string(&[BEL], out),
            _ => self.string_data(byte, out),
        }
    }

    fn string_data(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            // Controls mean nothing inside a string, except to terminals that act on them all the same.
            State::Osc | State::Pass if byte < 0x20 && !byte.is_ascii_whitespace() => self.continuation = 0,
            State::Pass if byte > 0x7e => {}
            State::Osc => {
                let follows = (0x80..=0xbf).contains(&byte);
                if follows && self.continuation == 0 && byte < 0xa0 {
                    return;
                }
                self.continuation =
                    if follows { self.continuation.saturating_sub(1) } else { continuation_of(byte) };
                self.hold(byte, State::Skip);
            }
            State::Pass => out.push(byte),
            _ => {
                self.skipped += 1;
                if self.skipped > MAX_SKIPPED_LEN {
                    self.ground();
                }
            }
        }
    }

    fn end_of_string(&mut self, end: &[u8], out: &mut Vec<u8>) {
        match self.state {
            State::Osc if self.policy.osc(&self.held[self.body..]) => {
                out.append(&mut self.held);
                out.extend_from_slice(end);
            }
            State::Pass => out.extend_from_slice(end),
            _ => {}
        }
        self.ground();
    }
}
