//! Describes a port and the address at which the host reaches it.

use serde::{Deserialize, Serialize};

/// A port of a session, and where it is reached from the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Published {
    /// The port that the session's programs listen on.
    pub inside: u16,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// The host's address.
    pub address: String,
    /// The host's port.
    pub port: u16,
    /// The variable that tells the session's programs of it, where it was reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}
