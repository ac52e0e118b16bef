//! Parses and checks session names, with or without a group.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Group;

/// A session's name, safe on a command line: one word, or `GROUP/NAME` where names are unique in their group alone
/// (see [`NameScope`](crate::NameScope)).
///
/// A word is one to 64 of `A-Z a-z 0-9 . _ -`, the first of them a letter, a digit or `_`. So no name is a path that
/// leads elsewhere; the file of one is [`Home::name`](crate::Home::name).
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
    /// The most bytes that a word of a name may have.
    pub const MAX_WORD_LEN: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The group that stands in it.
    pub fn group(&self) -> Option<Group> {
        self.0.split_once('/').map(|(group, _)| Group::of_word(group))
    }

    /// What it is in its group: the name without that.
    pub fn word(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, word)| word)
    }

    /// What is said to whom a name without a group was meant, where there are such in groups.
    pub fn hint_of(in_groups: &[Self]) -> Option<String> {
        const MAX_NAMES_SHOWN: usize = 5;
        let names: Vec<&str> = in_groups.iter().take(MAX_NAMES_SHOWN).map(Self::as_str).collect();
        let more = if in_groups.len() > MAX_NAMES_SHOWN { " and others" } else { "" };
        let are = if in_groups.len() == 1 { "is" } else { "are" };
        (!names.is_empty()).then(|| format!("there {are} {}{more}", names.join(", ")))
    }

    /// The same word in this group.
    #[must_use]
    pub fn within(&self, group: &Group) -> Self {
        Self(format!("{group}/{}", self.word()))
    }
}

/// Refuses what is no word of a name.
pub(crate) fn check_word(text: &str) -> Result<(), NameError> {
    explain(text).map_err(|why| NameError::of(text, why))
}

fn explain(word: &str) -> Result<(), &'static str> {
    let first = word.bytes().next().ok_or("it is empty")?;
    if word.len() > Name::MAX_WORD_LEN {
        return Err("it is longer than 64 bytes");
    }
    if !(first.is_ascii_alphanumeric() || first == b'_') {
        return Err("it must start with a letter, a digit or _");
    }
    if !word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return Err("only letters, digits, '.', '_' and '-' are allowed");
    }
    Ok(())
}

impl NameError {
    fn of(text: &str, why: &'static str) -> Self {
        Self { text: text.chars().take(2 * Name::MAX_WORD_LEN + 2).collect(), why }
    }
}

impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let refuse = |why| NameError::of(text, why);
        match text.split_once('/') {
            None => check_word(text)?,
            Some((_, word)) if word.contains('/') => return Err(refuse("it has more than one /")),
            Some((group, word)) if group.is_empty() || word.is_empty() => {
                return Err(refuse("a group and a name stand around its /"));
            }
            Some((group, word)) => explain(group).and_then(|()| explain(word)).map_err(refuse)?,
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
        let (before, after) = (format!("{long}/a"), format!("a/{long}"));
        let bad = [
            "", ".", "..", "/", "-rf", "a\0b", "a\nb", &long, "$(x)", "#(x)", "=x", "a.b:c", "🚢", "a b",
            ".hidden", "é", "../x", "a//b", "/a", "a/", "a/b/c", "a/..", "./a", "a/.", "a/-b", "-a/b",
            "a/b ", "a:b", "a/b:c", "a%2Fb", "//", "a\\b", &before, &after,
        ];
        for text in bad {
            assert!(text.parse::<Name>().is_err(), "{text:?} was taken");
            assert!(serde_json::from_value::<Name>(text.into()).is_err(), "{text:?} was read");
        }
    }

    #[test]
    fn ordinary_names_are_taken() {
        for text in ["a", "A", "eng-1", "eng-10", "a.b", "_x", "9", "claude_code.v2"] {
            let name: Name = text.parse().unwrap();
            assert_eq!((name.as_str(), name.word(), name.group()), (text, text, None));
        }
    }

    #[test]
    fn a_name_may_stand_in_a_group() {
        let word = "a".repeat(64);
        for (group, name) in [("team", "api"), ("a", "b"), ("_x", "9"), (&*word, &*word)] {
            let whole: Name = format!("{group}/{name}").parse().unwrap();
            assert_eq!((whole.group().unwrap().as_str(), whole.word()), (group, name));
            let plain: Name = name.parse().unwrap();
            assert_eq!(plain.within(&group.parse().unwrap()), whole);
            assert_eq!(whole.within(&"other".parse().unwrap()).as_str(), format!("other/{name}"));
        }
    }
}
