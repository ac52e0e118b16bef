//! Parses what `wharf wait --until` waits for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::State;

/// What is waited for in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Until {
    /// It is in this state.
    State(State),
    /// It has ended.
    Exit,
    /// A line on its screen matches this expression.
    Match(String),
    /// An event of this kind comes.
    Event(String),
}

/// A text that names nothing to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUntilError(String);

impl FromStr for Until {
    type Err = ParseUntilError;
    fn from_str(text: &str) -> Result<Self, ParseUntilError> {
        let wrong = || ParseUntilError(text.to_owned());
        match text.split_once('=') {
            Some((_, "")) => Err(wrong()),
            Some(("match", pattern)) => Ok(Self::Match(pattern.to_owned())),
            Some(("event", kind)) => Ok(Self::Event(kind.to_owned())),
            Some(_) => Err(wrong()),
            None => match text {
                "exit" | "exited" => Ok(Self::Exit),
                "starting" => Ok(Self::State(State::Starting)),
                "running" => Ok(Self::State(State::Running)),
                "idle" => Ok(Self::State(State::Idle)),
                "working" => Ok(Self::State(State::Working)),
                "asking" => Ok(Self::State(State::Asking)),
                _ => Err(wrong()),
            },
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => f.write_str(state.as_str()),
            Self::Exit => f.write_str("exit"),
            Self::Match(pattern) => write!(f, "match={pattern}"),
            Self::Event(kind) => write!(f, "event={kind}"),
        }
    }
}

impl TryFrom<String> for Until {
    type Error = ParseUntilError;
    fn try_from(text: String) -> Result<Self, ParseUntilError> {
        text.parse()
    }
}

impl From<Until> for String {
    fn from(until: Until) -> Self {
        until.to_string()
    }
}

impl fmt::Display for ParseUntilError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not starting, running, idle, working, asking, exit, match=RE or event=KIND",
            self.0
        )
    }
}

impl std::error::Error for ParseUntilError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_reads_back() {
        for text in ["idle", "asking", "working", "exit", "match=a=b$", "event=turn.ended"] {
            assert_eq!(text.parse::<Until>().unwrap().to_string(), text);
        }
        for text in ["", "lost", "match=", "event=", "what=x"] {
            assert!(text.parse::<Until>().is_err(), "{text}");
        }
    }
}
