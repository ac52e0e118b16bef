//! Defines a row of the screen, and joins wrapped rows into lines.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Cell;

use crate::glyph;
use crate::signal::PromptMark;

/// A row of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalRow {
    /// Its text. White space at the end is dropped, unless the text runs on in the next row.
    pub text: String,
    /// The text runs on in the next row: both are one line.
    pub wrapped: bool,
    /// The shell's mark on it, if there is one.
    pub mark: Option<PromptMark>,
}

/// The rows of a grid as they make up lines: every item is the range of one line, the first row first. What has
/// scrolled away has negative numbers.
pub(crate) fn line_ranges(grid: &Grid<Cell>, first: i32, end: i32) -> Vec<(i32, i32)> {
    let mut ranges = Vec::new();
    let mut from = first;
    for row in first..end {
        if row + 1 == end || !glyph::wrapped(&grid[Line(row)]) {
            ranges.push((from, row + 1));
            from = row + 1;
        }
    }
    ranges
}

/// The text of the rows of one line.
pub(crate) fn line_text(grid: &Grid<Cell>, (from, end): (i32, i32)) -> String {
    let mut text: String = (from..end).map(|row| glyph::text(&grid[Line(row)])).collect();
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// All lines of a grid, those that have scrolled away first.
pub(crate) fn lines(grid: &Grid<Cell>) -> Vec<String> {
    let (first, end) = (grid.topmost_line().0, grid.screen_lines() as i32);
    line_ranges(grid, first, end).into_iter().map(|range| line_text(grid, range)).collect()
}
