//! Makes and parses session ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Names one session for ever: 16 characters that sort by the time of creation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// A string that is no session id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseIdError;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_LEN: usize = 16;

impl SessionId {
    /// Makes an id from a time and 35 random bits.
    pub fn new(created: crate::Millis, random: u64) -> Self {
        let bits = (u128::from(created.0 & ((1 << 45) - 1)) << 35) | u128::from(random & ((1 << 35) - 1));
        let text = (0..ID_LEN).rev().map(|i| ALPHABET[(bits >> (i * 5)) as usize & 31] as char);
        Self(text.collect())
    }

    /// The id as text: safe as a file name and as a label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let whole = text.len() == ID_LEN && text.bytes().all(|b| ALPHABET.contains(&b));
        if whole { Ok(Self(text.to_owned())) } else { Err(ParseIdError) }
    }
}

impl TryFrom<String> for SessionId {
    type Error = ParseIdError;
    fn try_from(text: String) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a session id: 16 characters of 0-9 and a-z are expected")
    }
}

impl std::error::Error for ParseIdError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Millis;

    #[test]
    fn ids_sort_by_time_and_parse_back() {
        let early = SessionId::new(Millis(1_000), u64::MAX);
        let late = SessionId::new(Millis(1_001), 0);
        assert!(early < late);
        assert_eq!(early.as_str().parse(), Ok(early.clone()));
        assert_eq!("../../etc/passwd".parse::<SessionId>(), Err(ParseIdError));
        assert_eq!("".parse::<SessionId>(), Err(ParseIdError));
    }
}
