use std::time::Duration;

use tokio::sync::oneshot;
use wharf_model::{ExitRecord, Reason, Text};

use crate::Result;

/// How many messages may wait for a session's task. A sender past it waits: the task never does for long.
pub(crate) const QUEUE: usize = 8;

/// What is asked of a session's task.
pub(crate) enum Command {
    /// End it. The answer comes once it is over.
    Stop(Box<StopAsked>),
    /// End it if it runs, and start it again.
    Restart(Box<StopAsked>, oneshot::Sender<Result<()>>),
    /// Copy its output to a file, or no longer.
    Pipe { file: Option<Text>, from_start: bool, reply: oneshot::Sender<Result<()>> },
}

/// A stop that somebody asked for.
pub(crate) struct StopAsked {
    pub(crate) grace: Duration,
    pub(crate) reason: Reason,
    pub(crate) by: String,
    /// Absent where nobody waits for this stop alone.
    pub(crate) reply: Option<oneshot::Sender<Result<ExitRecord>>>,
    /// Whether it was tried before on a connection that broke.
    pub(crate) again: bool,
}
