//! How a session ends: asked, killed, or by itself; and then all that is left of it.

use std::time::{Duration, Instant};

use wharf_model::{ExitRecord, Millis, Reason};

use crate::linux::tree::Tree;
use crate::wire::StopRequest;

/// What descendants get when the command has ended and they have not.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
/// How long KILL is tried: a process in the kernel may take its time, and one in a broken driver for ever.
const KILL_TIMEOUT: Duration = Duration::from_secs(4);
/// How often it is looked whether something is left, while killing or where no signal tells us.
const LEFTOVER_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody asked.
    Running,
    /// TERM was sent; KILL follows then.
    Asked { kill_at: Instant },
    /// KILL is being sent.
    Killing { give_up: Instant },
}

/// The end of a session as it comes.
pub(super) struct Ending {
    phase: Phase,
    reason: Reason,
    by: Option<String>,
    /// The command's wait status, decoded, and when it ended.
    ended: Option<(Option<i32>, Option<i32>, Millis)>,
    leftovers: u32,
    /// It is over though something is left that cannot be ended.
    given_up: bool,
    /// Stops that wait for the end: peer and request.
    pub(super) waiting: Vec<(u64, u32)>,
}

impl Ending {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Running,
            reason: Reason::Exited,
            by: None,
            ended: None,
            leftovers: 0,
            given_up: false,
            waiting: Vec::new(),
        }
    }

    /// Somebody wants the end. The first one's words stand in the record; a later one can only hasten it.
    pub(super) fn ask(&mut self, request: &StopRequest, tree: &Tree, tty: bool) {
        let now = Instant::now();
        let kill_at = now + Duration::from_millis(request.grace.0);
        if self.by.is_none() && self.ended.is_none() {
            self.reason = request.reason;
            self.by = Some(request.by.clone());
        }
        self.phase = match self.phase {
            Phase::Running if request.grace.0 > 0 => {
                tree.terminate(tty);
                Phase::Asked { kill_at }
            }
            Phase::Asked { kill_at: earlier } if request.grace.0 > 0 => {
                Phase::Asked { kill_at: earlier.min(kill_at) }
            }
            Phase::Running | Phase::Asked { .. } => {
                tree.kill();
                Phase::Killing { give_up: now + KILL_TIMEOUT }
            }
            killing @ Phase::Killing { .. } => killing,
        };
    }

    /// The command has ended.
    pub(super) fn command_ended(&mut self, code: Option<i32>, signal: Option<i32>, now: Millis) {
        self.ended.get_or_insert((code, signal, now));
    }

    /// The session's terminal was taken away, and that is what ended it.
    pub(super) fn cut_off(&mut self, by: &str) {
        if self.by.is_none() {
            self.reason = Reason::Lost;
            self.by = Some(by.to_owned());
        }
    }

    /// Whether the command has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether an end is under way.
    pub(super) fn is_asked(&self) -> bool {
        self.phase != Phase::Running
    }

    /// When to look again.
    pub(super) fn deadline(&self, blind: bool) -> Option<Instant> {
        let soon = Instant::now() + LEFTOVER_POLL_INTERVAL;
        match self.phase {
            Phase::Running => (blind && self.ended.is_some()).then_some(soon),
            Phase::Asked { kill_at } => {
                Some(if blind || self.ended.is_some() { kill_at.min(soon) } else { kill_at })
            }
            Phase::Killing { .. } => Some(soon),
        }
    }

    /// Takes the next step. True when the session is over: nothing is left, or nothing more can be done.
    pub(super) fn step(&mut self, tree: &Tree, tty: bool, unreaped: bool) -> bool {
        let now = Instant::now();
        if self.phase == Phase::Running && self.ended.is_none() {
            return false;
        }
        let empty = self.ended.is_some() && tree.is_empty();
        // What is somebody else's is let go, and lives on.
        if empty || tree.guest && self.phase != Phase::Running {
            return true;
        }
        match self.phase {
            Phase::Running => {
                self.leftovers = tree.terminate(tty);
                self.phase = Phase::Asked { kill_at: now + LEFTOVER_GRACE };
            }
            Phase::Asked { kill_at } if now >= kill_at => {
                tree.kill();
                self.phase = Phase::Killing { give_up: now + KILL_TIMEOUT };
            }
            Phase::Asked { .. } => {}
            // Its status is on its way: a record without it would be half a record.
            Phase::Killing { give_up } if now >= give_up => {
                self.given_up = !unreaped;
                return self.given_up;
            }
            Phase::Killing { .. } => tree.kill(),
        }
        false
    }

    /// The record, once it is over.
    pub(super) fn record(&self, tree: &Tree, started: Millis, now: Millis) -> ExitRecord {
        let (code, signal, ended) = self.ended.unwrap_or((None, None, now));
        ExitRecord {
            code,
            signal,
            // Also where a shell stood between: it hands on that what it ran was killed.
            oom: self.reason == Reason::Exited && code != Some(0) && tree.group.oom_kills() > 0,
            limit: wharf_boundary::limits::behind_end(code, signal).filter(|_| self.reason == Reason::Exited),
            reason: self.reason,
            by: self.by.clone(),
            started,
            ended,
            leftovers: self.leftovers,
            survivors: if !self.given_up || tree.is_empty() { 0 } else { tree.members().len() as u32 },
            unsure: tree.is_unsure(),
            ..ExitRecord::default()
        }
    }
}
