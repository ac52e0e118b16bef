//! Defines all that a session's task and its observer can be asked, and who is answered.
//!
//! Callers send a [`Command`] to the task of a session and an [`ObserverRequest`] to its observer, each over a bounded channel and
//! with a `oneshot` for the answer. Where the other end goes away, the answer's sender is dropped, and the caller finds the session
//! as it is then.

use std::time::Duration;

use tokio::sync::oneshot;
use wharf_model::{ExitRecord, Failure, Offset, Reason, Text};
use wharf_screen::{Format, What};

use crate::Result;
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

/// How many requests may wait for an observer. A sender past it waits.
pub(crate) const MAX_QUEUED_REQUESTS: usize = 32;

/// What is asked of an observer, each with the way to answer.
pub(crate) enum ObserverRequest {
    /// The screen as text.
    Capture(What, Format, oneshot::Sender<String>),
    /// What changed on it.
    Since(Option<String>, oneshot::Sender<ScreenChanges>),
    /// What paints it on another terminal, and where in the log to go on from.
    Repaint(oneshot::Sender<(Vec<u8>, Offset)>),
}
