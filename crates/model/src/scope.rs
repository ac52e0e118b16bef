//! Defines how a session's processes are kept together, and its resource limits.

use serde::{Deserialize, Serialize};

use crate::Text;

/// How a session's processes are kept together, so that a stop finds them all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// A cgroup of version 2, ended by `cgroup.kill`.
    Cgroup2,
    /// Cgroups of version 1: the freezer holds the tree while it is killed.
    Cgroup1,
    /// A process namespace of its own, as in a container: nothing outlives its first process, the holder.
    Namespace,
    /// The holder is the subreaper, and walks its descendants.
    #[default]
    #[serde(other)]
    Walk,
}

/// The scope that is in force for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Which kind.
    pub kind: ScopeKind,
    /// The directories that were made for it; they are removed with the session.
    #[serde(default)]
    pub dirs: Vec<Text>,
}

impl Scope {
    /// Whether nothing was made for it.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a session may use at most. Refused where no cgroup can enforce it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processors; 0.5 is half of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        self.memory.is_none() && self.cpus.is_none() && self.pids.is_none()
    }
}
