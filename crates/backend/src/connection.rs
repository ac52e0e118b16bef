//! Declares the `Connection` trait: input, size, signals, output and the end of one live session.

use std::os::fd::OwnedFd;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use wharf_model::{ExitRecord, Millis, Offset, Reason, Size, Stats, Text};

use crate::{Output, Result};

/// A live session. Every call is safe at any time and from any task; dropping it ends nothing.
#[async_trait]
pub trait Connection: Send + Sync {
    /// Writes input. Returns when all of it is in the terminal or pipe, in one piece; concurrent writes do
    /// not mix. A timeout says how much had gone in.
    async fn write(&self, bytes: &[u8], within: Duration) -> Result<()>;

    /// Ends the input of a pipe session.
    async fn close_input(&self) -> Result<()>;

    /// How much input the application has not read, and the terminal's mode.
    async fn pending(&self) -> Result<Pending>;

    /// Changes the terminal's size.
    async fn resize(&self, size: Size) -> Result<()>;

    /// Sends a signal to the command, or to its whole tree.
    async fn signal(&self, signal: i32, tree: bool) -> Result<()>;

    /// Ends the session: TERM to the whole tree, grace, KILL until nothing is left. It never waits behind input.
    async fn stop(&self, stop: Stop) -> Result<ExitRecord>;

    /// Waits for the end. [`wharf_model::Code::Unreachable`] means that the connection broke before the end was known.
    async fn wait(&self) -> Result<ExitRecord>;

    /// What is known without asking: changes as it happens.
    fn status(&self) -> watch::Receiver<Status>;

    /// Reads output from an offset on, and follows it until the session ends.
    async fn output(&self, from: Offset) -> Result<Box<dyn Output>>;

    /// What the session uses.
    async fn stats(&self) -> Result<Stats>;

    /// Runs one more command in the session's place and tree; it ends with the session. Returns its code as a
    /// shell would have it.
    async fn exec(&self, request: ExecRequest) -> Result<i32>;
}

/// How to end a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// How long TERM may take before KILL; zero kills at once.
    pub grace: Duration,
    /// Why, for the exit record.
    pub reason: Reason,
    /// Who asks, for the exit record.
    pub by: String,
}

/// What is known of a live session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Attached terminals.
    pub attached: u32,
    /// Those of them that may type, and whose terminal answers what the application asks.
    pub typists: u32,
    /// The command's pid.
    pub pid: Option<i32>,
    /// The terminal's size.
    pub size: Size,
    /// When something was last typed.
    pub last_input: Option<Millis>,
    /// Whether a line was begun and not submitted, where that is known.
    pub line_open: Option<bool>,
    /// Whether something of that line was typed while the terminal was in line mode: it keeps it until the line ends.
    pub line_kept: bool,
    /// Whether the command is stopped by a signal.
    pub suspended: bool,
    /// How often something of the session was killed for want of memory, in this run.
    pub oom_kills: u64,
    /// How it ended; the last change there is.
    pub exit: Option<ExitRecord>,
    /// Whether the connection broke before the end was known.
    pub broken: bool,
    /// Who was asked and does not answer, in words; absent while there is nothing to complain of.
    pub silent: Option<String>,
}

/// Input that is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pending {
    /// Bytes that have been taken from writers and are not in the terminal yet.
    pub queued: u64,
    /// Bytes in the terminal that the application has not read.
    pub unread: u64,
    /// Whether the terminal hands over whole lines, and cuts those over 4,095 bytes.
    pub canonical: bool,
    /// Whether the terminal echoes.
    pub echo: bool,
}

/// A further command in a session's place.
#[derive(Debug)]
pub struct ExecRequest {
    /// The command.
    pub argv: Vec<Text>,
    /// Its variables, exactly.
    pub env: Vec<(Text, Text)>,
    /// Its directory.
    pub dir: Text,
    /// Its standard input, output and error. What runs in a place of its own (a container, a sandbox) never has these
    /// descriptors themselves: it has pipes or a new terminal, and the bytes are moved.
    pub stdio: [OwnedFd; 3],
    /// Whether it has a terminal that it controls: its standard input, or the new one in a place of its own.
    pub tty: bool,
}
