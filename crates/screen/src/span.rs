//! Clamps a terminal's size and scrollback to what the model affords.

use alacritty_terminal::grid::Dimensions;
use wharf_model::Size;

/// The widest and the highest screen that is modelled, and how many cells it may have, whatever a terminal claims.
const MAX_COLUMNS: u16 = 2048;
const MAX_ROWS: usize = 2048;
const MAX_CELLS: usize = 1 << 20;
/// How many cells scrollback may take, however wide a row is. A cell is 24 bytes.
const MAX_SCROLLBACK_CELLS: usize = 4 << 20;

/// A size for the grid, which needs two columns for a wide character.
pub(crate) struct Span {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Span {
    pub(crate) fn of(size: Size) -> Self {
        let columns = usize::from(size.cols.clamp(2, MAX_COLUMNS));
        Self { columns, rows: usize::from(size.rows).clamp(1, MAX_ROWS.min(MAX_CELLS / columns)) }
    }

    /// How many rows that scroll away can be kept.
    pub(crate) fn limit(&self, scrollback: usize) -> usize {
        scrollback.min(MAX_SCROLLBACK_CELLS / self.columns)
    }
}

impl Dimensions for Span {
    fn total_lines(&self) -> usize {
        self.rows
    }
    fn screen_lines(&self) -> usize {
        self.rows
    }
    fn columns(&self) -> usize {
        self.columns
    }
}
