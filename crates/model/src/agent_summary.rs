//! Describes an agent's profile as `wharf agents` lists it.

use serde::{Deserialize, Serialize};

/// An agent's profile, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its name, for `--agent`.
    pub name: String,
    /// What it is called.
    #[serde(default)]
    pub title: String,
    /// The programs that mean it.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Where its program is installed.
    #[serde(default)]
    pub installed: Option<String>,
    /// Which version that is, where somebody asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How the program is got, where its profile says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Its patterns that were too slow and are switched off, each with the session that it is off for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switched_off: Vec<String>,
}
