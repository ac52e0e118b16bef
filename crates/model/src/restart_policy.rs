//! Defines when a session starts again, after which pause, and what it waits for first.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Millis, Name};

/// When a session that ended by itself is started again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Never.
    #[default]
    No,
    /// When it ended with a code other than zero, or by a signal.
    OnFailure,
    /// Whenever it ended, unless somebody asked for the end.
    Always,
}

/// How long to wait before each restart: doubled each time up to a cap, with jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The first wait.
    pub first: Millis,
    /// The longest wait.
    pub cap: Millis,
    /// How many restarts in a row at most; none means no end. A run of ten times the cap clears the count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Millis(500), cap: Millis(60_000), most: None }
    }
}

impl Backoff {
    /// The wait before restart number `attempt` (from 0), between half of the full wait and all of it.
    ///
    /// `random` spreads sessions that died together; any number will do.
    pub fn wait(&self, attempt: u32, random: u64) -> Millis {
        let full = self.first.0.saturating_mul(1 << attempt.min(32)).min(self.cap.0);
        Millis(full - full / 2 + if full > 1 { random % (full / 2 + 1) } else { 0 })
    }
}

/// What a session waits for before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// The session to wait for.
    pub name: Name,
    /// What of it.
    pub what: AfterWhat,
}

/// What to wait for in another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AfterWhat {
    /// Its end, whatever the code.
    Exit,
    /// Its end with code 0.
    Success,
    /// A connection to its first reserved port is taken.
    Port,
    /// Its state *idle*.
    Idle,
}

/// A string that is not `NAME[:exit|success|port|idle]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseAfterError(String);

impl FromStr for After {
    type Err = ParseAfterError;
    fn from_str(text: &str) -> Result<Self, ParseAfterError> {
        let (name, what) = text.split_once(':').unwrap_or((text, "exit"));
        let what = match what {
            "exit" => AfterWhat::Exit,
            "success" => AfterWhat::Success,
            "port" => AfterWhat::Port,
            "idle" => AfterWhat::Idle,
            other => return Err(ParseAfterError(format!("{other:?} is none of exit, success, port, idle"))),
        };
        Ok(Self { name: name.parse().map_err(|e: crate::NameError| ParseAfterError(e.to_string()))?, what })
    }
}

impl fmt::Display for ParseAfterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseAfterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_its_cap_within_jitter() {
        let backoff = Backoff { first: Millis(100), cap: Millis(1_000), most: None };
        for random in [0, 1, 49, 50, 12_345, u64::MAX] {
            let waits: Vec<u64> = (0..6).map(|attempt| backoff.wait(attempt, random).0).collect();
            for (wait, full) in waits.iter().zip([100, 200, 400, 800, 1_000, 1_000]) {
                assert!((full / 2..=full).contains(wait), "{wait} is not within {full}");
            }
        }
        assert!(backoff.wait(u32::MAX, 7).0 <= 1_000);
    }
}
