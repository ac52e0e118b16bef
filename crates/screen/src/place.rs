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
}

impl Place {
    /// Notes the cursor's place, and puts the cursor behind the text.
    pub(crate) fn leave(grid: &mut Grid<Cell>) -> Self {
        let rows = grid.screen_lines() as i32;
        let cursor = &grid.cursor;
        let row = cursor.point.line.0;
        let used = (row + 1..rows).rev().find(|row| !glyph::is_blank(&grid[Line(*row)]));
        let last = used.unwrap_or(row);
        // A line may have begun above the screen.
        let ranges = line_ranges(grid, grid.topmost_line().0, last + 1);
        let at = ranges.iter().rposition(|(from, _)| *from <= row).unwrap_or(0);
        let before: usize = (ranges[at].0..row).map(|row| width(grid, row)).sum();
        let cells = before + cursor.point.column.0 + usize::from(cursor.input_needs_wrap);
        if last > row {
            grid.cursor.point.line = Line(last);
            grid.cursor.point.column = Column(0);
            grid.cursor.input_needs_wrap = false;
        }
        Self { lines_below: ranges.len() - 1 - at, cells }
    }

    /// Puts the cursor back to its place.
    pub(crate) fn find(&self, grid: &mut Grid<Cell>) {
        if self.lines_below == 0 {
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

/// How many cells of a row that runs on belong to the line.
fn width(grid: &Grid<Cell>, row: i32) -> usize {
    let row = &grid[Line(row)];
    row.len() - usize::from(row.last().is_some_and(glyph::is_gap))
}
