//! Defines the numbered event, as it stands on disk and on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Millis, Offset};

/// A numbered fact about a session, from any source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number: 1 is the session's first, and none is left out.
    pub seq: u64,
    /// When it became known.
    pub at: Millis,
    /// Where the session's log stood then.
    pub offset: Offset,
    /// What it is: `state`, `message`, `turn.started`, `tool.started`, `usage` and so on. Unknown kinds are kept.
    pub kind: String,
    /// Who says so: `engine`, `hook`, `sidecar`, `stream`, `terminal`.
    pub source: String,
    /// The rest, as its source gave it.
    #[serde(default)]
    pub data: Value,
}
