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
