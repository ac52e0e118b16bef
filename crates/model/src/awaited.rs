//! Says how far a message is waited for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How far a message is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Await {
    /// It is in the queue, on disk.
    #[default]
    Accepted,
    /// The submit key was pressed.
    Submitted,
    /// There is proof that the agent took it.
    Confirmed,
    /// The turn that it began has ended.
    Idle,
}

impl Await {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Submitted => "submitted",
            Self::Confirmed => "confirmed",
            Self::Idle => "idle",
        }
    }
}

impl fmt::Display for Await {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Await {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Accepted, Self::Submitted, Self::Confirmed, Self::Idle]
            .into_iter()
            .find(|how| how.as_str() == text)
            .ok_or_else(|| format!("{text:?} is none of submitted, confirmed, idle"))
    }
}
