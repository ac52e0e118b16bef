//! Describes one thing that `doctor` looked at.

use serde::{Deserialize, Serialize};

/// Something that was looked at, and how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    /// A check; the hint is for one that is not as it should be.
    pub fn new(name: &str, ok: bool, detail: impl Into<String>, hint: &str) -> Self {
        let hint = (!ok).then(|| hint.to_owned());
        Self { name: name.to_owned(), ok, detail: detail.into(), hint }
    }
}
