//! Selects the sessions to list, by group, label or whether they live.

use std::collections::BTreeMap;

use wharf_model::{Group, Session};

/// Which sessions to list: those that match every part that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// A group.
    pub group: Option<Group>,
    /// Labels with these values; an empty value asks only for the label.
    pub labels: BTreeMap<String, String>,
    /// Only sessions that are not over.
    pub live: bool,
}

impl Filter {
    /// Whether a session matches.
    pub fn matches(&self, session: &Session) -> bool {
        let label = |(name, value): (&String, &String)| {
            session.labels.get(name).is_some_and(|has| value.is_empty() || has == value)
        };
        !(self.live && session.state.is_over())
            && self.group.as_ref().is_none_or(|group| session.group.as_ref() == Some(group))
            && self.labels.iter().all(label)
    }
}
