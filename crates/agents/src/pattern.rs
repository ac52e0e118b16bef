use std::fmt;

use regex_lite::Regex;
use serde::de::{Deserialize, Deserializer, Error};

/// A regular expression in a profile. A bad one is an error where it stands.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// The pattern of this text.
    pub fn new(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self).map_err(|error| format!("bad pattern {text:?}: {error}"))
    }

    /// Whether it is found in this text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// What follows the first match, where there is one.
    pub fn after<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| &text[found.end()..])
    }

    /// Its first group in this text, or the whole match where it has none.
    pub fn pick<'t>(&self, text: &'t str) -> Option<&'t str> {
        let found = self.0.captures(text)?;
        found.get(1).or_else(|| found.get(0)).map(|part| part.as_str())
    }

    /// A named group in this text.
    pub fn group<'t>(&self, text: &'t str, name: &str) -> Option<&'t str> {
        self.0.captures(text)?.name(name).map(|part| part.as_str())
    }

    /// The text with every match taken out.
    pub fn without(&self, text: &str) -> String {
        self.0.replace_all(text, "").into_owned()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.as_str(), f)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(Error::custom)
    }
}
