//! The setting `[names] scope`: what the names of sessions are unique in.

use serde::{Deserialize, Serialize};

/// What the names of sessions are unique in: `[names] scope` of the configuration file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameScope {
    /// The instance: no two sessions that are not over have the same name.
    #[default]
    Instance,
    /// Their group: a session of a group is called `GROUP/NAME`.
    Group,
}

/// The table `[names]` of the configuration file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Names {
    /// What names are unique in.
    pub scope: NameScope,
}
