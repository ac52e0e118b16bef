//! Splits terminal output into text and whole sequences, however it is cut into pieces.
//!
//! What is unfinished waits here: bounded, and part of a checkpoint.

use std::{mem, str};

use memchr::memchr;
use serde::{Deserialize, Serialize};

use crate::rules::ScanRules;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const DEL: u8 = 0x7f;
/// The first byte of a control of the upper half, which is two bytes of UTF-8.
const C1_LEAD_BYTE: u8 = 0xc2;
/// How much memory an empty scanner may keep for the next sequence, in bytes.
const MAX_SPARE_LEN: usize = 512;

/// Takes what the scanner found. `at` is the index, within the piece just fed, of the byte that completed it.
///
/// One scanner is fed with sinks of one set of rules.
pub trait Sink {
    /// How odd input is read.
    const RULES: ScanRules;

    /// Text and control characters without `ESC`; here `at` is the index of the first byte.
    fn text(&mut self, bytes: &[u8], at: usize);
    /// A control character within a sequence, where it acts at once.
    fn control(&mut self, byte: u8, at: usize);
    /// `ESC`, intermediates, final: without the `ESC`.
    fn escape(&mut self, body: &[u8], at: usize);
    /// A control sequence, with the two bytes of its introducer.
    fn csi(&mut self, whole: &[u8], at: usize);
    /// An operating system command.
    fn osc(&mut self, osc: &Osc<'_>, at: usize);
    /// What stood between `ESC P` and its end. Under [`ScanRules::ANY_TERMINAL`] no string is held for this.
    fn dcs(&mut self, body: &[u8], at: usize);
    /// Under [`ScanRules::ANY_TERMINAL`]: whether a device control string with this head (parameters, intermediates, final)
    /// goes to [`pass`](Self::pass) as it arrives. Otherwise it is dropped.
    fn passes(&mut self, _head: &[u8]) -> bool {
        false
    }
    /// A piece of such a string: printable, with its introducer and always with an end.
    fn pass(&mut self, _bytes: &[u8]) {}
}

/// An operating system command in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Osc<'a> {
    /// `ESC ]`, or the same as a control of the upper half.
    pub introducer: [u8; 2],
    /// What stood between that and the end.
    pub body: &'a [u8],
    /// What ended it.
    pub end: End,
}

/// What ended a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// `BEL`.
    Bell,
    /// `ESC \`. Under [`ScanRules::MODEL`] any escape: what follows it comes as a sequence of its own.
    Escape,
    /// The control of the upper half.
    Upper,
}

impl End {
    /// Its bytes.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Bell => b"\x07",
            Self::Escape => b"\x1b\\",
            Self::Upper => b"\xc2\x9c",
        }
    }
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
    /// A device control string; where these may pass, its head.
    Dcs,
    /// A device control string that passes.
    Pass,
    /// A string of which nothing is kept; `BEL` ends it where it may have begun as an operating system command.
    Dropped {
        bell: bool,
    },
}

/// The state machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scanner {
    state: State,
    /// The unfinished sequence, of which only a control sequence has its introducer here, or the first bytes of an unfinished
    /// character.
    held: Vec<u8>,
    // A checkpoint is of a model, and these are for the other rules.
    /// The first byte of a pair that decides something: `ESC` in a string, or `C1_LEAD_BYTE`.
    #[serde(skip)]
    first: u8,
    /// The sequence began with a control of the upper half.
    #[serde(skip)]
    upper: bool,
    /// Continuation bytes that the current character still needs.
    #[serde(skip)]
    continuation: u8,
    /// How much of a dropped string was swallowed.
    #[serde(skip)]
    dropped: usize,
}

impl Scanner {
    /// Takes the next piece of output.
    // Inlined, it costs half a percent more for every sequence.
    #[inline(never)]
    pub fn feed<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) {
        let mut at = 0;
        while at < bytes.len() {
            if self.state != State::Ground {
                at += usize::from(self.byte(bytes[at], at, sink));
            } else if S::RULES.any_terminal {
                at += self.ground_any(&bytes[at..], at, sink);
            } else {
                at += self.ground(&bytes[at..], at, sink);
            }
        }
    }

    /// Whether nothing is unfinished.
    pub fn rests(&self) -> bool {
        self.state == State::Ground && self.held.is_empty() && self.first == 0
    }

    /// Whether what comes next is dropped, as part of a sequence that is.
    pub fn drops(&self) -> bool {
        matches!(self.state, State::CsiDropped | State::Dropped { .. })
    }

    /// The bytes of what is unfinished and was not passed yet, or such as have the same effect.
    pub fn unfinished(&self) -> Vec<u8> {
        let introducer = self.introducer();
        let introducer: &[u8] = match self.state {
            State::Ground | State::Csi | State::Pass => b"",
            State::Escape => b"\x1b",
            // A parameter after an intermediate: none that means anything.
            State::CsiDropped => return b"\x1b[ 0".to_vec(),
            State::Osc | State::Dcs => &introducer,
            // No command has this number.
            State::Dropped { bell: true } => b"\x1b]-;",
            State::Dropped { bell: false } => b"\x1b_",
        };
        let first: &[u8] = if self.first == 0 { b"" } else { &[self.first] };
        [introducer, &self.held, first].concat()
    }

    fn introducer(&self) -> [u8; 2] {
        match (self.state, self.upper) {
            (State::Osc, false) => *b"\x1b]",
            (State::Osc, true) => [C1_LEAD_BYTE, 0x9d],
            (_, false) => *b"\x1bP",
            (_, true) => [C1_LEAD_BYTE, 0x90],
        }
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

    /// The same for any terminal: no control of the upper half gets into text, in either form.
    fn ground_any(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let plain = bytes.iter().take_while(|byte| byte.is_ascii() && **byte != ESC).count();
        let byte = bytes[0];
        match (mem::take(&mut self.first), byte) {
            (C1_LEAD_BYTE, 0x80..=0x9f) => self.begin_upper(byte),
            (C1_LEAD_BYTE, 0xa0..=0xbf) => sink.text(&[C1_LEAD_BYTE, byte], at),
            // After half a character: what follows it must not make a whole one of it, so it is dropped.
            _ if plain > 0 => {
                self.continuation = 0;
                sink.text(&bytes[..plain], at);
                return plain;
            }
            (_, ESC) => self.begin(State::Escape, &[]),
            (_, C1_LEAD_BYTE) => (self.first, self.continuation) = (C1_LEAD_BYTE, 0),
            _ if self.follows(byte) => sink.text(&[byte], at),
            // A control of the upper half as one byte: some terminals would act on it.
            _ => {}
        }
        1
    }

    /// Counts what a character still needs; whether the byte is no control by itself.
    fn follows(&mut self, byte: u8) -> bool {
        if matches!(byte, 0x80..=0x9f) && self.continuation == 0 {
            return false;
        }
        self.continuation = match byte {
            0x80..=0xbf => self.continuation.saturating_sub(1),
            C1_LEAD_BYTE..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => 0,
        };
        true
    }

    /// A control of the upper half, as two bytes of UTF-8 of which this is the second.
    fn begin_upper(&mut self, byte: u8) {
        match byte {
            0x9b => self.begin(State::Csi, &[C1_LEAD_BYTE, byte]),
            0x9d => self.begin(State::Osc, &[]),
            0x90 => self.begin(State::Dcs, &[]),
            0x98 | 0x9e | 0x9f => self.begin(State::Dropped { bell: true }, &[]),
            _ => {}
        }
        self.upper = true;
    }

    #[inline]
    fn begin(&mut self, state: State, held: &[u8]) {
        self.state = state;
        self.held.clear();
        self.held.extend_from_slice(held);
        (self.first, self.upper, self.continuation, self.dropped) = (0, false, 0, 0);
    }

    #[inline]
    fn end(&mut self) {
        self.begin(State::Ground, &[]);
        // A long string must not keep its memory for the rest of the session.
        if self.held.capacity() > MAX_SPARE_LEN {
            self.held = Vec::new();
        }
    }

    /// One byte of a sequence; whether it was used.
    fn byte<S: Sink>(&mut self, byte: u8, at: usize, sink: &mut S) -> bool {
        if S::RULES.any_terminal
            && self.first != 0
            && let Some(used) = self.second(byte, at, sink)
        {
            return used;
        }
        match (byte, self.state) {
            (ESC, State::Osc | State::Pass | State::Dropped { .. }) if S::RULES.any_terminal => {
                self.first = ESC;
            }
            (ESC, State::Dcs) if S::RULES.any_terminal => self.drop_string(true, ESC),
            (ESC, _) => {
                self.string_ends(End::Escape, at, sink);
                self.begin(State::Escape, &[]);
            }
            (CAN | SUB, state) => {
                if state == State::Pass {
                    sink.pass(&[byte]);
                }
                self.end();
            }
            (_, State::Ground) => return false,
            (_, State::Escape) => return self.escape(byte, at, sink),
            (_, State::Csi | State::CsiDropped) => return self.csi(byte, at, sink),
            (BEL, State::Osc | State::Pass | State::Dropped { bell: true }) => {
                self.string_ends(End::Bell, at, sink);
                self.end();
            }
            (C1_LEAD_BYTE, State::Osc | State::Pass | State::Dropped { .. }) if S::RULES.any_terminal => {
                self.first = C1_LEAD_BYTE;
            }
            _ => self.string(byte, sink),
        }
        true
    }

    /// The second byte of a pair within a string. Whether it was used; `None` where the pair is not one, and the byte is next.
    #[cold]
    fn second<S: Sink>(&mut self, byte: u8, at: usize, sink: &mut S) -> Option<bool> {
        match (mem::take(&mut self.first), byte) {
            (ESC, b'\\') => {
                self.string_ends(End::Escape, at, sink);
                self.end();
            }
            (C1_LEAD_BYTE, 0x9c) => {
                self.string_ends(End::Upper, at, sink);
                self.end();
            }
            // Anything else ends the string too, which is none without its end, and begins a sequence.
            (ESC, _) => {
                self.cut(sink);
                self.begin(State::Escape, &[]);
                return Some(self.byte(byte, at, sink));
            }
            (C1_LEAD_BYTE, 0x80..=0x9f) => {
                self.cut(sink);
                self.end();
                self.begin_upper(byte);
            }
            (C1_LEAD_BYTE, 0xa0..=0xbf) => {
                self.string(C1_LEAD_BYTE, sink);
                return None;
            }
            // Half a character is dropped, as outside of strings.
            _ => return None,
        }
        Some(true)
    }

    /// What has passed of a string that is cut off gets its end.
    fn cut(&self, sink: &mut impl Sink) {
        if self.state == State::Pass {
            sink.pass(End::Escape.bytes());
        }
    }

    fn string_ends(&self, end: End, at: usize, sink: &mut impl Sink) {
        match self.state {
            State::Osc => sink.osc(&Osc { introducer: self.introducer(), body: &self.held, end }, at),
            State::Dcs => sink.dcs(&self.held, at),
            State::Pass => sink.pass(end.bytes()),
            _ => {}
        }
    }

    fn drop_string(&mut self, bell: bool, first: u8) {
        self.held = Vec::new();
        self.state = State::Dropped { bell };
        self.first = first;
    }

    /// One byte that a string consists of.
    fn string<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        let any = S::RULES.any_terminal;
        // Controls mean nothing inside a string, except to terminals that act on them all the same.
        let control = byte < 0x20 && !(any && byte.is_ascii_whitespace());
        let state = self.state;
        match state {
            State::Osc if any && control => self.continuation = 0,
            State::Osc if any && !self.follows(byte) => {}
            State::Osc if self.held.len() >= S::RULES.max_string_len => self.drop_string(true, 0),
            State::Dcs if any => self.head(byte, sink),
            State::Dcs if self.held.len() >= S::RULES.max_device_string_len => self.drop_string(false, 0),
            State::Osc | State::Dcs if !control => self.held.push(byte),
            State::Pass if !control && byte < DEL => sink.pass(&[byte]),
            State::Dropped { .. } if any => {
                self.dropped += 1;
                if self.dropped > S::RULES.max_dropped_len {
                    self.end();
                }
            }
            _ => {}
        }
    }

    /// One byte of the head of a device control string, which decides whether the rest passes.
    fn head<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        match byte {
            0x20..=0x3f if self.held.len() < S::RULES.max_device_string_len => self.held.push(byte),
            0x20..=0x3f => self.drop_string(true, 0),
            0x40..=0x7e => {
                self.held.push(byte);
                if sink.passes(&self.held) {
                    sink.pass(&self.introducer());
                    sink.pass(&self.held);
                    self.state = State::Pass;
                    self.held.clear();
                } else {
                    self.drop_string(true, 0);
                }
            }
            _ => {}
        }
    }

    fn escape<S: Sink>(&mut self, byte: u8, at: usize, sink: &mut S) -> bool {
        let any = S::RULES.any_terminal;
        let first = self.held.is_empty();
        match byte {
            0..=0x1f | DEL => sink.control(byte, at),
            b'[' if first => self.begin(State::Csi, b"\x1b["),
            b']' if first => self.begin(State::Osc, &[]),
            b'P' if first => self.begin(State::Dcs, &[]),
            // The title as screen and tmux are told it: a string as well.
            b'k' if first && !any => self.begin(State::Osc, b"2;"),
            b'X' | b'^' | b'_' if first => self.begin(State::Dropped { bell: any }, &[]),
            0x20..=0x2f if self.held.len() < S::RULES.max_intermediates => self.held.push(byte),
            0x20..=0x2f if !any => {}
            0x30..=0x7e => {
                self.held.push(byte);
                sink.escape(&self.held, at);
                self.end();
            }
            _ => {
                self.end();
                return false;
            }
        }
        true
    }

    fn csi<S: Sink>(&mut self, byte: u8, at: usize, sink: &mut S) -> bool {
        match byte {
            0..=0x1f | DEL => sink.control(byte, at),
            0x20..=0x3f if self.held.len() < S::RULES.max_sequence_len => self.held.push(byte),
            0x20..=0x3f => self.state = State::CsiDropped,
            0x40..=0x7e => {
                if self.state == State::Csi {
                    self.held.push(byte);
                    sink.csi(&self.held, at);
                }
                self.end();
            }
            _ if S::RULES.any_terminal => {
                self.end();
                return false;
            }
            _ => {}
        }
        true
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
    use proptest::prelude::*;

    use super::*;

    /// What is heard under the rules of the model, or under those for any terminal.
    #[derive(Default, Debug, PartialEq, Eq)]
    struct Heard<const ANY: bool> {
        base: usize,
        events: Vec<(usize, String)>,
        text: Vec<u8>,
        passed: Vec<u8>,
    }

    impl<const ANY: bool> Heard<ANY> {
        fn note(&mut self, at: usize, what: &str, body: &[u8]) {
            self.events.push((self.base + at, format!("{what} {}", String::from_utf8_lossy(body))));
        }

        fn names(&self) -> Vec<&str> {
            self.events.iter().map(|(_, event)| event.as_str()).collect()
        }
    }

    impl<const ANY: bool> Sink for Heard<ANY> {
        const RULES: ScanRules = if ANY { ScanRules::ANY_TERMINAL } else { ScanRules::MODEL };

        fn text(&mut self, bytes: &[u8], _: usize) {
            self.text.extend_from_slice(bytes);
        }
        fn control(&mut self, byte: u8, at: usize) {
            self.note(at, "control", format!("{byte:x}").as_bytes());
        }
        fn escape(&mut self, body: &[u8], at: usize) {
            self.note(at, "esc", body);
        }
        fn csi(&mut self, whole: &[u8], at: usize) {
            self.note(at, "csi", &whole[2..]);
        }
        fn osc(&mut self, osc: &Osc<'_>, at: usize) {
            self.note(at, &format!("osc {:?}", osc.end), osc.body);
        }
        fn dcs(&mut self, body: &[u8], at: usize) {
            self.note(at, "dcs", body);
        }
        fn passes(&mut self, head: &[u8]) -> bool {
            head.ends_with(b"q") && !head.starts_with(b"$")
        }
        fn pass(&mut self, bytes: &[u8]) {
            self.passed.extend_from_slice(bytes);
        }
    }

    fn heard<const ANY: bool>(pieces: &[&[u8]]) -> Heard<ANY> {
        let mut scanner = Scanner::default();
        let mut heard = Heard::default();
        for piece in pieces {
            scanner.feed(piece, &mut heard);
            heard.base += piece.len();
        }
        heard
    }

    fn model(pieces: &[&[u8]]) -> Heard<false> {
        heard(pieces)
    }

    #[test]
    fn sequences_come_whole_however_they_are_cut() {
        let bytes = "a\x1b[1;2Hé漢\x1b]0;t\x07b\x1b]2;u\x1b\\\x1bP$qm\x1b\\\x1b(0\x1b_x\x1b\\c😀".as_bytes();
        let whole = model(&[bytes]);
        assert_eq!(
            whole.names(),
            ["csi 1;2H", "osc Bell 0;t", "osc Escape 2;u", "esc \\", "dcs $qm", "esc \\", "esc (0", "esc \\"]
        );
        assert_eq!(whole.text, "aé漢bc😀".as_bytes());
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(model(&single), whole);
        for at in 0..bytes.len() {
            assert_eq!(model(&[&bytes[..at], &bytes[at..]]), whole);
        }
    }

    #[test]
    fn for_any_terminal_controls_of_the_upper_half_count_and_pictures_pass_as_they_come() {
        let bytes = b"a\xc2\x9b6n\xc2\x9d0;t\xc2\x9c\x1b]2;u\x1b\\\x1b]2;v\x1b[m\x1bP1;2q~~\x07\x1bP$qm\x1b\\\x9b\xc2\xa9b";
        let whole: Heard<true> = heard(&[bytes]);
        assert_eq!(whole.names(), ["csi 6n", "osc Upper 0;t", "osc Escape 2;u", "csi m"]);
        assert_eq!(whole.text, b"a\xc2\xa9b");
        assert_eq!(whole.passed, b"\x1bP1;2q~~\x07");
    }

    fn endless<const ANY: bool>() {
        for introducer in [b"\x1b]0;".as_slice(), b"\x1bP1", b"\x1b_G", b"\x1b[", b"\x1b "] {
            let mut scanner = Scanner::default();
            let mut sink = Heard::<ANY>::default();
            scanner.feed(introducer, &mut sink);
            for _ in 0..200 {
                scanner.feed(&b";".repeat(64 << 10), &mut sink);
                sink.text.clear();
                let most = 2 * Heard::<ANY>::RULES.max_string_len;
                assert!(scanner.held.capacity() <= most, "{}", scanner.held.capacity());
            }
            scanner.feed(b"\x1b\\m\x1b[5n", &mut sink);
            assert_eq!(sink.names().last(), Some(&"csi 5n"), "what follows is heard");
            assert!(!sink.names().iter().any(|heard| heard.starts_with("osc") || heard.starts_with("dcs")));
        }
    }

    #[test]
    fn an_endless_string_costs_bounded_memory() {
        endless::<false>();
        endless::<true>();
    }

    #[test]
    fn broken_characters_do_not_swallow_what_follows() {
        assert_eq!(model(&[b"\xe2\x82", b"x"]).text, b"\xe2\x82x");
        assert_eq!(model(&[b"\xc3", b"\xa9A\xe2"]).text, b"\xc3\xa9A");
        assert_eq!(model(&[b"\xf0\x9f", b"\x1b[m"]).text, b"\xf0\x9f");
    }

    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let bit = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..6),
            prop::collection::vec(
                prop::sample::select(
                    &b"\x1b\x1b\x1b[]PkX^_\\\\\x07\x18\x1a\x05\n\x7f\xc2\xc2\x9b\x9d\x90\x9c\x98\x9f\xa9\xe2\x82\xac\xf0\x80\xff0;?>q$ n%mZ"[..]
                ),
                0..12
            ),
            prop::sample::select(vec![
                "\x1b[",
                "\x1b]",
                "\x1bP",
                "\x1b_",
                "\x1bk",
                "\x1b\\",
                "\u{9b}",
                "\u{9d}",
                "\u{90}",
                "\u{9c}",
                "6n",
                "10;?",
                "1;2q",
                "$q",
                "0;t",
                "text é😀",
            ])
            .prop_map(|text| text.as_bytes().to_vec()),
            // Beyond what the model holds of a sequence, and what may stand in an escape for any terminal.
            Just(vec![b'1'; 600]),
            Just(vec![b' '; 20]),
        ];
        prop::collection::vec(bit, 0..40).prop_map(|bits| bits.concat())
    }

    /// Everything heard is the same, and so is what is unfinished.
    fn agree<const ANY: bool>(bytes: &[u8], cuts: &[usize]) -> Result<(), TestCaseError> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let (mut whole, mut cut) = (Scanner::default(), Scanner::default());
        let (mut all, mut by_pieces) = (Heard::<ANY>::default(), Heard::<ANY>::default());
        whole.feed(bytes, &mut all);
        for pair in cuts.windows(2) {
            cut.feed(&bytes[pair[0]..pair[1]], &mut by_pieces);
            by_pieces.base += pair[1] - pair[0];
        }
        by_pieces.base = 0;
        prop_assert_eq!(by_pieces, all);
        prop_assert_eq!(cut.unfinished(), whole.unfinished());
        prop_assert_eq!((cut.rests(), cut.drops()), (whole.rests(), whole.drops()));
        Ok(())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(bytes in hostile(), cuts in prop::collection::vec(any::<usize>(), 0..8)) {
            agree::<false>(&bytes, &cuts)?;
            agree::<true>(&bytes, &cuts)?;
        }
    }
}
