use serde::{Deserialize, Serialize};

/// A moment as milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Whether this is no moment at all.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl From<std::time::SystemTime> for Millis {
    /// Times before the epoch become the epoch: a clock that is set wrong must not end anything.
    fn from(time: std::time::SystemTime) -> Self {
        Self(time.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64))
    }
}
