//! Where the cursor stands in the text, whatever the size of the grid.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Cell;

use crate::glyph;
use crate::row::line_ranges;

/// A place in the text: which line, counted from the last one, and how far into it.
///
/// When the grid becomes lower or wider it cuts off what stands below its cursor. So the cursor is put behind all text
/// while that happens, and back to its place afterwards.
pub(crate) struct Place {
    lines_below: usize,
    cells: usize,
    /// The cursor was put elsewhere.
    left: bool,
}

impl Place {
    /// Notes the cursor's place, and puts the cursor behind the text.
    pub(crate) fn leave(grid: &mut Grid<Cell>) -> Self {
        let cursor = &grid.cursor;
        let row = cursor.point.line.0;
        let last = last_used(grid);
        // A line may have begun above the screen.
        let ranges = line_ranges(grid, grid.topmost_line().0, last + 1);
        let at = ranges.iter().rposition(|(from, _)| *from <= row).unwrap_or(0);
        let before: usize = (ranges[at].0..row).map(|row| width(grid, row)).sum();
        let cells = before + cursor.point.column.0 + usize::from(cursor.input_needs_wrap);
        let lines_below = ranges.len() - 1 - at;
        Self { lines_below, cells, left: park(grid) }
    }

    /// Puts the cursor back to its place.
    pub(crate) fn find(&self, grid: &mut Grid<Cell>) {
        // On its way the grid may have lost count of the rows that its cursor stands behind.
        if !park(grid) && !self.left {
            return;
        }
        let last = grid.cursor.point.line.0;
        let ranges = line_ranges(grid, grid.topmost_line().0, last + 1);
        let Some(&(from, end)) = ranges.iter().rev().nth(self.lines_below) else { return };
        let mut cells = self.cells;
        let mut row = from;
        while row + 1 < end && cells >= width(grid, row) {
            cells -= width(grid, row);
            row += 1;
        }
        let columns = grid.columns();
        let cursor = &mut grid.cursor;
        cursor.point.line = Line(row.max(0));
        cursor.point.column = Column(cells.min(columns - 1));
        cursor.input_needs_wrap = row >= 0 && cells == columns;
    }
}

/// Puts the cursor behind all text, unless it stands there; whether it had to be moved.
pub(crate) fn park(grid: &mut Grid<Cell>) -> bool {
    let (row, last) = (grid.cursor.point.line.0, last_used(grid));
    let end = text_end(grid, last);
    let columns = grid.columns();
    let cursor = &mut grid.cursor;
    let ahead = last > row || end > cursor.point.column.0 + usize::from(cursor.input_needs_wrap);
    if ahead {
        cursor.point.line = Line(last);
        cursor.point.column = Column(end.min(columns - 1));
        cursor.input_needs_wrap = end == columns;
    }
    ahead
}

/// The last row with something on it, the cursor included.
fn last_used(grid: &Grid<Cell>) -> i32 {
    let (row, rows) = (grid.cursor.point.line.0, grid.screen_lines() as i32);
    (row + 1..rows).rev().find(|row| !glyph::is_blank(&grid[Line(*row)])).unwrap_or(row)
}

/// The first column behind a row's text.
fn text_end(grid: &Grid<Cell>, row: i32) -> usize {
    let plain = Cell::default();
    let row = &grid[Line(row)];
    row.into_iter().rposition(|cell| !glyph::same_look(cell, &plain)).map_or(0, |at| at + 1)
}

/// How many cells of a row that runs on belong to the line.
fn width(grid: &Grid<Cell>, row: i32) -> usize {
    let row = &grid[Line(row)];
    row.len() - usize::from(row.last().is_some_and(glyph::is_gap))
}
