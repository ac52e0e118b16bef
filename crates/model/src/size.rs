//! Defines a terminal's size, its bounds, and whose terminal decides it.

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

    /// A size that a stranger named, within what a screen may cost us: sane, and at most a quarter of a million cells.
    #[must_use]
    pub fn affordable(self) -> Self {
        let Self { cols, rows } = self.sane();
        Self { cols, rows: rows.min(u16::try_from(MAX_CELLS / u32::from(cols)).unwrap_or(rows)) }
    }
}

/// The most cells of a screen whose size a stranger named.
const MAX_CELLS: u32 = 1 << 18;

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
