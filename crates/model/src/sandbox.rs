//! Defines what a spec allows a sandboxed command: files and network.

use serde::{Deserialize, Serialize};

use crate::Text;

/// What a session's command may touch of this host. What is not named here is closed to it, but for what every
/// program needs to run at all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sandbox {
    /// Files and directories that it may read and run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Text>,
    /// Files and directories that it may also change; the directory that it runs in is always one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Text>,
    /// How far its network reaches.
    pub network: Network,
}

/// How far the network of a sandbox reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nowhere: not even to itself.
    Off,
    /// To other processes of the same session, by a loopback of its own.
    Loopback,
    /// As far as the host's.
    #[default]
    Open,
}

impl Network {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Loopback => "loopback",
            Self::Open => "open",
        }
    }
}
