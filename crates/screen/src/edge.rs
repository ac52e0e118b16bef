//! The ends of rows, and cursors that wait there for the next character.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::glyph;

/// Puts the cursors back onto the grid, and drops a pending wrap that is no longer at its edge.
pub(crate) fn settle(grid: &mut Grid<Cell>) {
    let (last_row, last) = (grid.screen_lines() as i32 - 1, grid.columns() - 1);
    // Where the saved one belongs in the text nobody knows any more.
    grid.saved_cursor.input_needs_wrap = false;
    for cursor in [&mut grid.cursor, &mut grid.saved_cursor] {
        cursor.point.line = cursor.point.line.clamp(Line(0), Line(last_row));
        cursor.point.column = cursor.point.column.min(Column(last));
        if cursor.input_needs_wrap && cursor.point.column < Column(last) {
            cursor.input_needs_wrap = false;
            cursor.point.column += 1;
        }
    }
    for row in 0..=last_row {
        glyph::heal(&mut grid[Line(row)]);
    }
    edge(grid, last + 1);
    unwrap_last(grid);
}

pub(crate) fn unwrap_last(grid: &mut Grid<Cell>) {
    let last = grid.bottommost_line();
    if glyph::wrapped(&grid[last])
        && let Some(cell) = grid[last].last_mut()
    {
        cell.flags.remove(Flags::WRAPLINE);
    }
}

/// A cursor that waits at the end of a row, or at the right margin: it has a character there that can be printed there
/// again. At the end of a row, that row does not run on.
pub(crate) fn edge(grid: &mut Grid<Cell>, right: usize) {
    if grid.cursor.input_needs_wrap {
        let (Point { line, column }, last) = (grid.cursor.point, grid.last_column());
        if column == last
            && let Some(cell) = grid[line].last_mut()
        {
            cell.flags.remove(Flags::WRAPLINE);
        }
        let fits = glyph::ending(&grid[line], column.0).is_some_and(|glyph| {
            let end = if column.0 + 1 - glyph.width < right { right } else { last.0 + 1 };
            column.0 + 1 == end
        });
        grid.cursor.input_needs_wrap = fits;
    }
}
