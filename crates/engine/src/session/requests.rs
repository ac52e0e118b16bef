//! Defines all that a session's tasks can be asked, and who is answered.
//!
//! Callers send a [`Command`] to the task of a session, an [`ObserverRequest`] to its observer and a [`CourierRequest`] to its
//! courier, each over a bounded channel and, where there is an answer, with a `oneshot` for it. Where the other end goes away,
//! the answer's sender is dropped, and the caller finds the session as it is then. docs/design/session-task.md says which of the
//! three has which fact.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wharf_model::{ExitRecord, Failure, Manner, Millis, Offset, Progress, Reason, Receipt, State, Text};
use wharf_screen::{Format, What};

use crate::Result;
use crate::deliver::queue::{Facts, Intent};
use crate::observe::view::ScreenChanges;

/// How many commands may wait for a session's task. A sender past it waits: the task takes them without waiting for anything long.
pub(crate) const MAX_QUEUED_COMMANDS: usize = 8;

/// What is asked of a session's task.
pub(crate) enum Command {
    /// End it. The answer comes once it is over.
    Stop(Box<StopRequest>),
    /// End it if it runs, and start it again.
    Restart(Box<StopRequest>, RestartRequest),
    /// Copy its output to a file, or no longer.
    Pipe { file: Option<Text>, from_start: bool, reply: oneshot::Sender<Result<()>> },
}

/// Somebody who asked for a restart.
pub(crate) struct RestartRequest {
    pub(crate) reply: oneshot::Sender<Result<()>>,
    /// Whether what the paths of the host mean is decided anew.
    pub(crate) repin: bool,
}

/// A stop that somebody asked for.
pub(crate) struct StopRequest {
    pub(crate) grace: Duration,
    pub(crate) reason: Reason,
    pub(crate) by: String,
    /// Absent where nobody waits for this stop alone.
    pub(crate) reply: Option<oneshot::Sender<Result<ExitRecord>>>,
    /// Whether it was tried before on a connection that broke.
    pub(crate) again: bool,
    /// Why the holder did not carry out a kill: its place is asked for it then, and the holder no more.
    pub(crate) refused: Option<Failure>,
}

impl StopRequest {
    pub(crate) fn is_kill(&self) -> bool {
        self.grace.is_zero()
    }
}

/// What is asked of an observer.
pub(crate) enum ObserverRequest {
    /// The screen as text.
    Capture(What, Format, oneshot::Sender<String>),
    /// What changed on it.
    Since(Option<String>, oneshot::Sender<ScreenChanges>),
    /// What paints it on another terminal, and where in the log to go on from.
    Repaint(oneshot::Sender<(Vec<u8>, Offset)>),
    /// Weigh what a hook or a program of the session told.
    Told(AgentEvent),
    /// Expect the turn that a message has begun whose key was pressed then. The answer is whether it is still to come.
    ExpectTurn(Instant, oneshot::Sender<bool>),
    /// Take this for the program's own prompt: nothing gave up what it seems to wait for.
    MainPrompt(String),
}

impl ObserverRequest {
    /// Whether the answer is what the screen shows now.
    pub(crate) fn is_look(&self) -> bool {
        matches!(self, Self::Capture(..) | Self::Since(..) | Self::Repaint(..))
    }
}

/// What a hook or a program of the session told.
pub(crate) struct AgentEvent {
    pub(crate) kind: String,
    /// The state that it moves the session to.
    pub(crate) state: Option<State>,
    pub(crate) evidence: String,
    /// The prompt that began a turn, and when that was told.
    pub(crate) prompt: Option<(Millis, String)>,
    /// Whether a hook told it.
    pub(crate) by_hook: bool,
}

/// What is asked of a courier.
pub(crate) enum CourierRequest {
    /// Look for messages to deliver, be it to say that nobody is left to read them.
    Deliver,
    /// Publish what became of every message.
    Load(oneshot::Sender<Result<()>>),
    /// Take a message. It is on disk before the answer.
    Accept(String, Box<Manner>, oneshot::Sender<Result<Receipt>>),
    /// Take a message back that was not typed yet; none where there is no such message.
    Cancel(String, oneshot::Sender<Result<Option<Receipt>>>),
    /// Keep what is about to be done for a message. It is on disk before the answer; one that is over is not begun.
    Intend(String, Intent, oneshot::Sender<Result<()>>),
    /// Move a message on.
    Step(Box<MessageStep>, oneshot::Sender<Result<Receipt>>),
}

/// How a message moves on.
pub(crate) struct MessageStep {
    pub(crate) id: String,
    pub(crate) status: Progress,
    pub(crate) evidence: String,
    pub(crate) facts: Facts,
}

impl CourierRequest {
    /// Answers that it cannot be done.
    pub(crate) fn refuse(self, failure: &Failure) {
        let failure = failure.clone();
        // Whoever went away wants no answer.
        match self {
            Self::Deliver => {}
            Self::Load(reply) | Self::Intend(_, _, reply) => drop(reply.send(Err(failure))),
            Self::Accept(_, _, reply) | Self::Step(_, reply) => drop(reply.send(Err(failure))),
            Self::Cancel(_, reply) => drop(reply.send(Err(failure))),
        }
    }
}
