use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A session's or group's name: unique among the user's sessions, safe in a path and on a command line.
///
/// One to 64 of `A-Z a-z 0-9 . _ -`, the first of them a letter, a digit or `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Why a string is no name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameError {
    text: String,
    why: &'static str,
}

impl Name {
    /// The most bytes that a name may have.
    pub const MOST: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let refuse = |why| Err(NameError { text: text.chars().take(Self::MOST + 1).collect(), why });
        let Some(first) = text.bytes().next() else { return refuse("it is empty") };
        if text.len() > Self::MOST {
            return refuse("it is longer than 64 bytes");
        }
        if !(first.is_ascii_alphanumeric() || first == b'_') {
            return refuse("it must start with a letter, a digit or _");
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
            return refuse("only letters, digits, '.', '_' and '-' are allowed");
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a name: {}", self.text, self.why)
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        let long = "a".repeat(65);
        let bad = [
            "", ".", "..", "/", "-rf", "a\0b", "a\nb", &long, "$(x)", "#(x)", "=x", "a.b:c", "🚢", "a b",
            "a/b", ".hidden", "é",
        ];
        for text in bad {
            assert!(text.parse::<Name>().is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn ordinary_names_are_taken() {
        for text in ["a", "A", "eng-1", "eng-10", "a.b", "_x", "9", "claude_code.v2"] {
            assert_eq!(text.parse::<Name>().unwrap().as_str(), text);
        }
    }
}
