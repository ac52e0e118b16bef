//! A turn that failed: what it looks like, and how it is begun once more.

use serde::Deserialize;

use crate::look::unframed;
use crate::{Look, Pattern, Profile, Region};

/// How a failed turn of an agent is recognised, and what has it go on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryRules {
    /// A row that says that the last turn failed.
    pub failed: Option<Pattern>,
    /// A row that shows, under such a one, that something came after it.
    pub newer: Option<Pattern>,
    /// Where they can be.
    pub region: Region,
    /// The message that has the agent go on; without one there is no retry.
    pub text: String,
    /// The message that makes the conversation shorter first.
    pub compact: Option<String>,
}

impl Profile {
    /// The row that says that the last turn failed, where one does.
    pub fn failed_turn(&self, look: &Look<'_>) -> Option<String> {
        let failed = self.retry.failed.as_ref()?;
        let composer = self.locate(look).map(|(rows, _)| rows);
        let rows = self.retry.region.rows(look, composer.as_ref());
        let row = |index: usize| unframed(&look.rows[index]);
        let at = rows.clone().rev().find(|index| failed.is_match(row(*index)))?;
        let newer = |index: usize| self.retry.newer.as_ref().is_some_and(|newer| newer.is_match(row(index)));
        (!(at + 1..rows.end).any(newer)).then(|| row(at).trim().to_owned())
    }
}
