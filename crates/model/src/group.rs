//! What a group of sessions is called.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::NameError;
use crate::name::check_word;

/// What a group of sessions is called: one word, as in a [`Name`](crate::Name), and never a `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Group(String);

impl Group {
    /// The group's name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The group of a word that was looked at before.
    pub(crate) fn of_word(word: &str) -> Self {
        Self(word.to_owned())
    }
}

impl FromStr for Group {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        check_word(text).map(|()| Self(text.to_owned()))
    }
}

impl TryFrom<String> for Group {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Group> for String {
    fn from(group: Group) -> Self {
        group.0
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_one_word() {
        assert_eq!("team-1.x_y".parse::<Group>().unwrap().as_str(), "team-1.x_y");
        for text in ["", "a/b", "/", "..", "a:b", "a b", "-a", &"a".repeat(65)] {
            assert!(text.parse::<Group>().is_err(), "{text:?} was taken");
            assert!(serde_json::from_value::<Group>(text.into()).is_err(), "{text:?} was read");
        }
    }
}
