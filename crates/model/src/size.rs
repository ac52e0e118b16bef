use serde::{Deserialize, Serialize};

/// A terminal's size in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Width.
    pub cols: u16,
    /// Height.
    pub rows: u16,
}

impl Size {
    /// The size within what programs bear: at least 1×1, at most 4096×4096.
    #[must_use]
    pub fn sane(self) -> Self {
        Self { cols: self.cols.clamp(1, 4096), rows: self.rows.clamp(1, 4096) }
    }
}

impl Default for Size {
    fn default() -> Self {
        Self { cols: 80, rows: 24 }
    }
}

/// Whose terminal decides a session's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Geometry {
    /// Nobody's: it stays as it was started, until `resize`.
    Fixed,
    /// That of the first who is attached; when he leaves, of the next.
    Owner,
    /// That of whoever typed last.
    #[default]
    Latest,
}
