//! A box of cells, and what moves or fills it.

use std::ops::Range;

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use crate::glyph;

/// Rows and columns of a grid. It may be empty, and never reaches beyond the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl Area {
    /// Moves the text up; what leaves the top is gone.
    pub(crate) fn roll_up(&self, grid: &mut Grid<Cell>, by: usize) {
        let by = by.min(self.rows.len());
        for last in self.rows.clone().rev().take(by) {
            self.hand_on(grid, self.rows.clone().take(last + 1 - self.rows.start).rev().step_by(by));
        }
    }

    /// Moves the text down; what leaves the bottom is gone.
    pub(crate) fn roll_down(&self, grid: &mut Grid<Cell>, by: usize) {
        let by = by.min(self.rows.len());
        for first in self.rows.clone().take(by) {
            self.hand_on(grid, (first..self.rows.end).step_by(by));
        }
    }

    /// Moves the text to the right.
    pub(crate) fn push(&self, grid: &mut Grid<Cell>, by: usize) {
        let by = by.min(self.columns.len());
        self.each(grid, |cells, blank| {
            cells.rotate_right(by);
            cells[..by].fill(blank.clone());
        });
    }

    /// Moves the text to the left.
    pub(crate) fn pull(&self, grid: &mut Grid<Cell>, by: usize) {
        let by = by.min(self.columns.len());
        self.each(grid, |cells, blank| {
            cells.rotate_left(by);
            let kept = cells.len() - by;
            cells[kept..].fill(blank.clone());
        });
    }

    /// Writes the same into every cell.
    pub(crate) fn fill(&self, grid: &mut Grid<Cell>, cell: &Cell) {
        self.each(grid, |cells, _| cells.fill(cell.clone()));
    }

    pub(crate) fn erase(&self, grid: &mut Grid<Cell>) {
        self.each(grid, |cells, blank| cells.fill(blank.clone()));
    }

    /// Copies the cells to another place: as many of them as `to` has room for, its first one first.
    pub(crate) fn copy(&self, grid: &mut Grid<Cell>, to: &Self) {
        let (height, width) = (self.rows.len().min(to.rows.len()), self.columns.len().min(to.columns.len()));
        let cells: Vec<Vec<Cell>> = (self.rows.start..self.rows.start + height)
            .map(|row| self.cells(grid, row)[..width].iter().map(bare).collect())
            .collect();
        let to = Self {
            rows: to.rows.start..to.rows.start + height,
            columns: to.columns.start..to.columns.start + width,
        };
        let mut cells = cells.into_iter();
        to.each(grid, |place, _| place.clone_from_slice(&cells.next().expect("as many as there are rows")));
    }

    fn cells<'a>(&self, grid: &'a Grid<Cell>, row: usize) -> &'a [Cell] {
        &grid[Line(row as i32)][Column(self.columns.start)..Column(self.columns.end)]
    }

    /// Every row gives its cells to the next one. The first becomes blank. No character is cut: all rows are, at the
    /// same columns.
    fn hand_on(&self, grid: &mut Grid<Cell>, rows: impl Iterator<Item = usize>) {
        let mut cells = vec![blank(grid); self.columns.len()];
        for row in rows {
            self.open(grid, row);
            let columns = Column(self.columns.start)..Column(self.columns.end);
            grid[Line(row as i32)][columns].swap_with_slice(&mut cells);
        }
    }

    fn each(&self, grid: &mut Grid<Cell>, mut act: impl FnMut(&mut [Cell], &Cell)) {
        let blank = blank(grid);
        for row in self.rows.clone() {
            self.open(grid, row);
            let columns = Column(self.columns.start)..Column(self.columns.end);
            act(&mut grid[Line(row as i32)][columns], &blank);
            glyph::heal(&mut grid[Line(row as i32)]);
        }
    }

    /// Blanks the characters of a row that stand across the box's sides. What its last cell says of the next row goes.
    fn open(&self, grid: &mut Grid<Cell>, row: usize) {
        let columns = grid.columns();
        let row = &mut grid[Line(row as i32)];
        glyph::part(row, self.columns.start);
        glyph::part(row, self.columns.end);
        if self.columns.end == columns
            && let Some(cell) = row.last_mut()
        {
            cell.flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
        }
    }
}

/// What a cell becomes where text has gone.
fn blank(grid: &Grid<Cell>) -> Cell {
    grid.cursor.template.bg.into()
}

/// A cell without what it says of the next row.
fn bare(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    cell.flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
    cell
}
