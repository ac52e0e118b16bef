//! Margins at the sides: where they are, and how the cursor moves between them.

use alacritty_terminal::grid::Grid;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{Handler, NamedMode};

use crate::area::Area;
use crate::terminal::Terminal;

impl Terminal {
    /// The first column between the margins, and the one after the last.
    pub(crate) fn sides(&self) -> (usize, usize) {
        self.notes.sides.unwrap_or((0, self.columns()))
    }

    /// The columns that the cursor may be on, where it is addressed absolutely.
    pub(crate) fn side_bounds(&self) -> (usize, usize) {
        if self.mode(TermMode::ORIGIN) { self.sides() } else { (0, self.columns()) }
    }

    /// Lets margins at the sides be set (DECLRMM), or takes them away. The cursor stays.
    pub(crate) fn allow_sides(&mut self, allow: bool) {
        self.notes.sided = allow;
        if !allow {
            self.narrow(None);
        }
    }

    /// Sets the margins at the sides (DECSLRM), and moves the cursor home.
    pub(crate) fn set_sides(&mut self, left: usize, right: usize) {
        self.narrow(((left, right) != (0, self.columns())).then_some((left, right)));
        self.place(0, 0);
    }

    pub(crate) fn narrow(&mut self, sides: Option<(usize, usize)>) {
        if sides == self.notes.sides {
            return;
        }
        self.notes.sides = sides;
        self.notes.turned = vec![false; if sides.is_some() { self.rows() } else { 0 }];
        self.hurry();
    }

    /// Nobody waits any more at a margin that may have gone.
    fn hurry(&mut self) {
        hurry(self.term.grid_mut());
        if let Some(away) = &mut self.away {
            hurry(away);
        }
    }

    /// Between two screens: the one that goes does not wait at a margin, and nothing is known of what ran on.
    pub(crate) fn change(&mut self) {
        if self.notes.sides.is_some() {
            self.notes.turned.fill(false);
            if let Some(away) = &mut self.away {
                hurry(away);
            }
        }
    }

    /// Moves the cursor to a place that counts from the margins in origin mode, and from the edges otherwise.
    pub(crate) fn place(&mut self, row: usize, column: usize) {
        let ((top, bottom), (left, right)) = (self.bounds(), self.side_bounds());
        let point = &mut self.term.grid_mut().cursor.point;
        point.line = Line((top + row).min(bottom - 1) as i32);
        self.slide((left + column).min(right - 1));
    }

    /// Puts the cursor back between the margins, where it may not be elsewhere.
    pub(crate) fn confine(&mut self) {
        let ((top, bottom), (left, right)) = (self.bounds(), self.side_bounds());
        let cursor = &mut self.term.grid_mut().cursor;
        let line = cursor.point.line.clamp(Line(top as i32), Line(bottom as i32 - 1));
        let column = cursor.point.column.clamp(Column(left), Column(right - 1));
        cursor.input_needs_wrap &= column == cursor.point.column;
        (cursor.point.line, cursor.point.column) = (line, column);
    }

    /// The column that text which goes on at the cursor does not reach: outside of the margins, the screen's edge.
    pub(crate) fn limit(&self) -> usize {
        let right = self.sides().1;
        if self.cursor().column.0 < right { right } else { self.columns() }
    }

    /// The column that a carriage return goes to.
    pub(crate) fn line_start(&self) -> usize {
        let left = self.sides().0;
        let inside = self.cursor().column.0 >= left || self.mode(TermMode::ORIGIN);
        if inside { left } else { 0 }
    }

    /// Whether the cursor stands between the margins at the sides.
    pub(crate) fn between(&self) -> bool {
        let (left, right) = self.sides();
        (left..right).contains(&self.cursor().column.0)
    }

    /// Whether the cursor stands between all four margins.
    pub(crate) fn inside(&self) -> bool {
        let (top, bottom) = self.notes.margins;
        (top as i32..bottom as i32).contains(&self.cursor().line.0) && self.between()
    }

    /// All that is between the margins.
    pub(crate) fn region(&self) -> Area {
        let ((top, bottom), (left, right)) = (self.notes.margins, self.sides());
        Area { rows: top..bottom, columns: left..right }
    }

    /// Lets a box of cells change.
    pub(crate) fn rearrange(&mut self, act: impl FnOnce(&mut Grid<Cell>)) {
        act(self.term.grid_mut());
        self.moved(false);
    }

    /// Moves what is between the margins up, from a row on.
    pub(crate) fn roll_up(&mut self, from: usize, by: usize) {
        let area = Area { rows: from..self.notes.margins.1, ..self.region() };
        if let Some(turned) = self.notes.turned.get_mut(area.rows.clone()) {
            let by = by.min(turned.len());
            turned.rotate_left(by);
            let kept = turned.len() - by;
            turned[kept..].fill(false);
        }
        self.rearrange(|grid| area.roll_up(grid, by));
    }

    /// Moves what is between the margins down, from a row on.
    pub(crate) fn roll_down(&mut self, from: usize, by: usize) {
        let area = Area { rows: from..self.notes.margins.1, ..self.region() };
        if let Some(turned) = self.notes.turned.get_mut(area.rows.clone()) {
            let by = by.min(turned.len());
            turned.rotate_right(by);
            turned[..by].fill(false);
        }
        self.rearrange(|grid| area.roll_down(grid, by));
    }

    /// Moves the cursor down. At the bottom the text moves, where the cursor is between the margins.
    pub(crate) fn index(&mut self) {
        let (top, bottom) = self.notes.margins;
        if self.cursor().line + 1 == bottom as i32 && self.between() {
            self.roll_up(top, 1);
        } else {
            self.climb(1);
        }
        self.term.grid_mut().cursor.input_needs_wrap = false;
    }

    /// The same, upwards.
    pub(crate) fn reverse_index(&mut self) {
        let top = self.notes.margins.0;
        if self.cursor().line == top as i32 && self.between() {
            self.roll_down(top, 1);
        } else {
            self.climb(-1);
        }
        self.term.grid_mut().cursor.input_needs_wrap = false;
    }

    /// Moves the cursor one column forwards; at the right margin the text moves instead (DECFI).
    pub(crate) fn forward_index(&mut self) {
        let column = self.cursor().column.0;
        if column + 1 != self.sides().1 {
            self.slide(column + 1);
        } else if self.inside() {
            let region = self.region();
            self.slide(column);
            self.rearrange(|grid| region.pull(grid, 1));
        }
    }

    /// Moves the cursor one column back; at the left margin the text moves instead (DECBI).
    pub(crate) fn back_index(&mut self) {
        let column = self.cursor().column.0;
        if column != self.sides().0 {
            self.slide(column.saturating_sub(1));
        } else if self.inside() {
            let region = self.region();
            self.slide(column);
            self.rearrange(|grid| region.push(grid, 1));
        }
    }

    /// Moves the cursor to a tab stop, or to the right margin.
    pub(crate) fn tab(&mut self, count: usize) {
        let (from, limit) = (self.cursor().column.0, self.limit());
        let mut column = from;
        for _ in 0..count.min(limit) {
            column = (column + 1..limit).find(|at| self.notes.tabs[*at]).unwrap_or(limit - 1);
        }
        if column != from {
            self.slide(column);
        }
    }

    /// Forgets which rows ran on, as far as they are erased.
    pub(crate) fn forget_turns(&mut self, display: bool, what: u16) {
        let line = self.cursor().line.0 as usize;
        let turned = &mut self.notes.turned;
        match (display, what) {
            (true, 0) => turned[line..].fill(false),
            (true, 1) => turned[..=line].fill(false),
            (true, 2) => turned.fill(false),
            (false, 0 | 2) => turned[line] = false,
            _ => {}
        }
    }

    /// Prints a character of one or two cells, which wraps at the right margin.
    pub(crate) fn put(&mut self, c: char, width: usize) {
        let wraps = self.mode(TermMode::LINE_WRAP);
        if wraps && self.grid().cursor.input_needs_wrap {
            self.turn();
        }
        if self.cursor().column.0 + width > self.limit() {
            if !wraps {
                return;
            }
            self.turn();
        }
        let (at, end) = (self.cursor(), self.limit());
        let inserts = self.mode(TermMode::INSERT);
        if inserts {
            if self.between() {
                let line = at.line.0 as usize;
                let area = Area { rows: line..line + 1, columns: at.column.0..end };
                area.push(self.term.grid_mut(), width);
            }
            // The grid would move cells as far as its edge.
            self.term.unset_mode(NamedMode::Insert.into());
        }
        self.term.input(c);
        if inserts {
            self.term.set_mode(NamedMode::Insert.into());
        }
        if at.column.0 + width == end {
            let cursor = &mut self.term.grid_mut().cursor;
            (cursor.point.column, cursor.input_needs_wrap) = (Column(end - 1), true);
        }
    }

    /// The columns that are left in the cursor's row; none while it waits to go on in the next.
    pub(crate) fn room(&self) -> usize {
        let waits = self.grid().cursor.input_needs_wrap;
        if waits { 0 } else { self.limit().saturating_sub(self.cursor().column.0) }
    }

    /// Scrolls at once for that many rows that follow the last one, and not for each when it comes: a box scrolls by
    /// moving all of its cells.
    pub(crate) fn make_rows(&mut self, rows: usize) {
        let (top, bottom) = self.notes.margins;
        // The cursor's row stays in sight: it says where the next one begins.
        let by = rows.min(bottom - top - 1);
        if by > 1 && self.cursor().line + 1 == bottom as i32 && self.between() {
            if self.notes.sides.is_some() {
                self.roll_up(top, by);
            } else {
                self.term.scroll_up(by);
            }
            self.term.grid_mut().cursor.point.line -= by;
        }
    }

    /// Goes on at the left margin of the next row. Such rows are no line: there is other text beside them.
    fn turn(&mut self) {
        if self.between() {
            let line = self.cursor().line.0 as usize;
            self.notes.turned[line] = true;
        }
        self.index();
        self.slide(self.sides().0);
    }

    /// Moves the cursor one column back, not past the left margin unless it stands before it. With reverse wrap, the
    /// left margin follows the right one of a row that ran on.
    pub(crate) fn back_within(&mut self) {
        let (point, (left, right)) = (self.cursor(), self.sides());
        let wraps = self.wraps_back();
        let above = (point.line.0 - 1).max(0) as usize;
        if wraps && self.grid().cursor.input_needs_wrap {
            self.slide(point.column.0);
        } else if wraps
            && point.column == left
            && point.line > self.notes.margins.0 as i32
            && self.notes.turned[above]
        {
            self.climb(-1);
            self.slide(right - 1);
        } else {
            let first = if point.column.0 < left { 0 } else { left };
            self.slide(point.column.saturating_sub(1).max(first));
        }
    }
}

fn hurry(grid: &mut Grid<Cell>) {
    let last = alacritty_terminal::grid::Dimensions::last_column(grid);
    for cursor in [&mut grid.cursor, &mut grid.saved_cursor] {
        cursor.input_needs_wrap &= cursor.point.column == last;
    }
}
