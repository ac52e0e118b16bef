//! Identifies a process by pid, start time and boot, so that a reused pid is never mistaken.

use serde::{Deserialize, Serialize};

/// Which process, beyond doubt: a pid alone may have been given to a stranger meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start: u64,
    /// The boot in which `pid` and `start` mean something.
    pub boot: String,
    /// The PID namespace in which `pid` means something, by its number; a record of an older version has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
}
