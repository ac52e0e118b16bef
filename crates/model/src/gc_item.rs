//! Describes one thing that a collection of garbage found.

use serde::{Deserialize, Serialize};

/// One thing that a collection removed, would remove, or kept on doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcItem {
    /// `removed` or `kept`.
    pub what: String,
    /// The thing: a session, a directory, a process.
    pub thing: String,
    /// Why.
    pub why: String,
}

impl GcItem {
    /// Something that is removed.
    pub fn removed(thing: String, why: impl Into<String>) -> Self {
        Self { what: "removed".to_owned(), thing, why: why.into() }
    }

    /// Something that is kept on doubt.
    pub fn kept(thing: String, why: impl Into<String>) -> Self {
        Self { what: "kept".to_owned(), thing, why: why.into() }
    }
}
