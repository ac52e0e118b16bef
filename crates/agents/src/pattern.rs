//! A regular expression in a profile, with limits to what it may cost.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use regex_lite::{Regex, RegexBuilder};
use serde::de::{Deserialize, Deserializer, Error};

use crate::budget;

/// How large a pattern may be once it is compiled, in bytes. A match takes time for each of them and each character.
const MAX_COMPILED_LEN: usize = 32 << 10;

/// How many groups a pattern may have: each is copied at every step.
const MAX_GROUPS: usize = 16;

/// How much of a text is looked at, in bytes: a row of a terminal is shorter.
const MAX_TEXT_LEN: usize = 4 << 10;

/// A regular expression in a profile. A bad one is an error where it stands.
#[derive(Clone)]
pub struct Pattern {
    regex: Regex,
    text: Arc<str>,
}

impl Pattern {
    /// The pattern of this text.
    pub fn new(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(60).collect();
        let regex = RegexBuilder::new(text)
            .size_limit(MAX_COMPILED_LEN)
            .build()
            .map_err(|error| format!("bad pattern {shown:?}: {error}"))?;
        if regex.captures_len() > MAX_GROUPS + 1 {
            return Err(format!("bad pattern {shown:?}: it has more than {MAX_GROUPS} groups"));
        }
        Ok(Self { regex, text: text.into() })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is found in this text.
    pub fn is_match(&self, text: &str) -> bool {
        self.within_budget(text, |regex, text| regex.is_match(text).then_some(())).is_some()
    }

    /// What follows the first match, where there is one.
    pub fn after<'t>(&self, text: &'t str) -> Option<&'t str> {
        let end = self.within_budget(text, |regex, text| regex.find(text).map(|found| found.end()))?;
        text.get(end..)
    }

    /// Its first group in this text, or the whole match where it has none.
    pub fn pick<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.within_budget(text, |regex, text| {
            let found = regex.captures(text)?;
            found.get(1).or_else(|| found.get(0)).map(|part| part.as_str())
        })
    }

    /// A named group in this text.
    pub fn group<'t>(&self, text: &'t str, name: &str) -> Option<&'t str> {
        self.within_budget(text, |regex, text| regex.captures(text)?.name(name).map(|part| part.as_str()))
    }

    /// Matches, unless it is switched off or the look's time is up.
    fn within_budget<'t, T>(
        &self,
        text: &'t str,
        work: impl FnOnce(&Regex, &'t str) -> Option<T>,
    ) -> Option<T> {
        if !budget::allows(&self.text) {
            return None;
        }
        let begun = Instant::now();
        let found = work(&self.regex, cut(text));
        budget::spent(&self.text, begun.elapsed());
        found
    }
}

/// The beginning of a text that is too long.
fn cut(text: &str) -> &str {
    if text.len() <= MAX_TEXT_LEN {
        return text;
    }
    let end = (0..=MAX_TEXT_LEN).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_limits() {
        for (text, word) in
            [("(", "bad pattern"), (r"(\w{1,200}){1,200}", "size"), (&"(a)".repeat(17), "groups")]
        {
            let error = Pattern::new(text).expect_err(text);
            assert!(error.contains("bad pattern") && error.contains(word), "{error}");
        }
        let pattern = Pattern::new("x$").unwrap();
        assert!(pattern.is_match(&format!("{}x", "a".repeat(100))));
        assert!(!pattern.is_match(&format!("{}x", "é".repeat(MAX_TEXT_LEN))), "nobody looks that far");
    }
}
