//! Describes a container image, as `wharf image ls` lists it.

use serde::{Deserialize, Serialize};

use crate::Millis;

/// An image that an engine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSummary {
    /// The backend whose engine has it.
    pub backend: String,
    /// The engine's own id of it.
    pub id: String,
    /// What it is called; nothing where a newer one has taken its name.
    #[serde(default)]
    pub names: Vec<String>,
    /// Its size in bytes.
    #[serde(default)]
    pub size: u64,
    /// When it was made.
    #[serde(default)]
    pub created: Millis,
    /// Whether it was built by this install.
    #[serde(default)]
    pub ours: bool,
    /// How many containers need it, whether they run or not.
    #[serde(default)]
    pub containers: u32,
}
