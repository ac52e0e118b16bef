//! Defines the states of a session, and the three values of liveness.

use serde::{Deserialize, Serialize};

/// What a session is doing, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Accepted; its command does not run yet.
    Starting,
    /// Runs, and nothing more is known of it.
    Running,
    /// Runs and waits for a message.
    Idle,
    /// Runs and works on a turn.
    Working,
    /// Runs and waits for an answer to a question.
    Asking,
    /// Ended; its exit record says how.
    Exited,
    /// Gone without an exit record.
    Lost,
    /// Could not be reached; nothing is concluded from that.
    Unknown,
}

impl State {
    /// Whether the session has ended for good.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Exited | Self::Lost)
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Asking => "asking",
            Self::Exited => "exited",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether a session's command lives. A failed probe is `Unknown`, and nothing is ended on `Unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Liveness {
    /// Seen alive.
    Alive,
    /// Seen gone.
    Gone,
    /// Could not tell.
    Unknown,
}
