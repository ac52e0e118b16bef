//! Defines a state's report: the source, the evidence and the competing claims.

use serde::{Deserialize, Serialize};

use crate::{Millis, State};

/// A state, and why it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The state.
    pub state: State,
    /// Who says so.
    pub source: Source,
    /// Since when.
    pub since: Millis,
    /// What it rests on, in words.
    pub evidence: String,
}

/// What became of an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupted {
    /// The state after it.
    #[serde(flatten)]
    pub report: Report,
    /// The keys that were pressed; none where there was nothing to stop.
    #[serde(default)]
    pub keys: Vec<String>,
    /// What was done and why, or why nothing was.
    #[serde(default)]
    pub reason: String,
}

/// Who says what a session is doing, the most trusted first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The session's own life: started, ended, out of reach.
    #[default]
    Life,
    /// The agent itself: hooks, its event socket, its stream of JSON.
    Agent,
    /// Signals of the terminal: titles, OSC 9;4, 133, 7501.
    Terminal,
    /// The process tree: who owns the terminal.
    Process,
    /// Rules over what stands on the screen.
    Screen,
    /// Nothing but the time since the last output.
    Quiet,
}

impl Source {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Life => "life",
            Self::Agent => "agent",
            Self::Terminal => "terminal",
            Self::Process => "process",
            Self::Screen => "screen",
            Self::Quiet => "quiet",
        }
    }
}

/// Why a session is in its state: what every source says, and which rule decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The answer.
    pub report: Report,
    /// Which rule decided.
    pub decided: String,
    /// What each source says.
    pub claims: Vec<Claim>,
    /// The profile that reads the screen.
    pub profile: String,
    /// The text that stands in the composer, where the profile finds one.
    #[serde(default)]
    pub composer: Option<String>,
    /// The profile's patterns that took too long and are switched off for this session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switched_off: Vec<String>,
}

/// What one source says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who.
    pub source: Source,
    /// What.
    pub state: State,
    /// Since when it says so without a break.
    pub since: Millis,
    /// The rule of the profile, or the kind of the event.
    pub rule: String,
    /// What was seen.
    pub evidence: String,
    /// Whether it decided, or why not.
    pub verdict: String,
}
