//! The way of keys past the holder, which would have to wake for each: whether we have the terminal, and what the holder
//! was not told yet of what we typed into it.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

use rustix::termios::{LocalModes, tcgetattr};
use wharf_holder::line::Line;
use wharf_holder::wire::INPUT_NEWS_INTERVAL;
use wharf_model::Millis;

/// The most bytes that are typed past the holder: a key, not a paste.
pub(crate) const MAX_DIRECT_LEN: usize = 64;
/// How soon the terminal is asked for again once it was refused or asked back.
const ASK_AGAIN_INTERVAL: Duration = Duration::from_secs(1);

/// What the holder is told of keys that went past it: when the last was typed, and whether its line goes on.
type Report = [u8; 9];

/// The terminal of a session, where its holder lets us have it.
#[derive(Debug, Default)]
pub(crate) struct DirectInput {
    /// Whether it is wanted at all.
    wanted: bool,
    terminal: Option<OwnedFd>,
    /// The request for it that is not answered yet, and what arrived meanwhile.
    asked: Option<u32>,
    passed: Vec<OwnedFd>,
    /// Whether something went by the holder since it was asked for: that may still wait there.
    overtaken: bool,
    /// When it was last refused or asked back.
    refused: Option<Instant>,
    /// When the holder was last told that something is typed, and when something was typed that it was not told of.
    reported: Option<Instant>,
    unreported: Millis,
    /// What we have typed and not submitted, and whether the holder was told that something stands there.
    line: Line,
    reported_mark: u8,
}

impl DirectInput {
    pub(crate) fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    pub(crate) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Types what the terminal takes at once. Returns how much.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let Some(terminal) = &self.terminal else { return 0 };
        let modes = tcgetattr(terminal).map(|all| all.local_modes);
        let canonical = modes.is_ok_and(|modes| modes.contains(LocalModes::ICANON));
        // What it does not take is for the holder to wait with, and why for it to say.
        let typed = rustix::io::write(terminal, bytes).unwrap_or(0);
        if typed > 0 {
            self.line.typed(&bytes[..typed], canonical);
            self.unreported = SystemTime::now().into();
        }
        typed
    }

    /// What the holder is to be told now that so many bytes were typed.
    pub(crate) fn due_report(&mut self, typed: usize) -> Option<Report> {
        // Whether a line was begun or ended is told at once: a message waits for its end.
        let turned = self.line.mark() != self.reported_mark;
        let due = turned || self.reported.is_none_or(|told| told.elapsed() > INPUT_NEWS_INTERVAL);
        if typed == 0 || !due {
            return None;
        }
        self.reported = Some(Instant::now());
        Some(self.report())
    }

    fn report(&mut self) -> Report {
        let at = std::mem::take(&mut self.unreported);
        self.reported_mark = self.line.mark();
        let mut payload = [self.reported_mark; 9];
        payload[..8].copy_from_slice(&at.0.to_le_bytes());
        payload
    }

    /// Bytes go by the holder, which sees the line by itself.
    pub(crate) fn went_by_holder(&mut self, bytes: &[u8]) {
        self.line.typed(bytes, false);
        self.reported_mark = self.line.mark();
        self.overtaken = true;
    }

    /// Whether to ask for the terminal now.
    pub(crate) fn may_ask(&self) -> bool {
        self.wanted && self.asked.is_none() && self.refused.is_none_or(|at| at.elapsed() > ASK_AGAIN_INTERVAL)
    }

    /// The request `seq` asks for the terminal.
    pub(crate) fn asked(&mut self, seq: u32) {
        (self.asked, self.overtaken) = (Some(seq), false);
    }

    pub(crate) fn is_asked_by(&self, seq: u32) -> bool {
        self.asked == Some(seq)
    }

    /// Where descriptors go that arrive, while the terminal is asked for.
    pub(crate) fn passed(&mut self) -> Option<&mut Vec<OwnedFd>> {
        self.asked.is_some().then_some(&mut self.passed)
    }

    /// The request for the terminal was answered. Whether the terminal is to be returned at once.
    pub(crate) fn answered(&mut self, granted: bool) -> bool {
        self.asked = None;
        let terminal = self.passed.pop();
        if !granted {
            self.refused = Some(Instant::now());
            return false;
        }
        if terminal.is_none() || self.overtaken {
            // Where no descriptor comes with the answer, none ever will.
            self.wanted = terminal.is_some();
            return true;
        }
        (self.terminal, self.refused) = (terminal, None);
        false
    }

    /// The holder wants the terminal back.
    pub(crate) fn recalled(&mut self) {
        if self.terminal.is_some() {
            self.refused = Some(Instant::now());
        }
    }

    /// Lets the terminal go: what the holder is told of what was typed, where we had it.
    pub(crate) fn give_up(&mut self) -> Option<Report> {
        self.terminal.take()?;
        Some(self.report())
    }
}
