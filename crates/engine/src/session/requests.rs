//! Defines the messages to a session's task: stop, restart, copy output.

use std::time::Duration;

use tokio::sync::oneshot;
use wharf_model::{ExitRecord, Failure, Reason, Text};

use crate::Result;

/// How many messages may wait for a session's task. A sender past it waits: the task never does for long.
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
