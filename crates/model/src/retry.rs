//! Says how a failed turn of an agent is begun once more.

use serde::{Deserialize, Serialize};

/// How a failed turn is begun once more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Have the agent make the conversation shorter first.
    #[serde(default)]
    pub compact: bool,
    /// Though nothing shows that the last turn failed.
    #[serde(default)]
    pub force: bool,
}
