//! The grid of both screens, and what moves on them.

use std::cell::RefCell;
use std::mem;
use std::time::Duration;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Charsets, Cursor, Dimensions, Grid, Scroll};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{
    Handler, NamedPrivateMode, Processor, StandardCharset, TabulationClearMode, Timeout,
};
use wharf_model::Size;

use crate::edge::{edge, settle, unwrap_last};
use crate::glyph;
use crate::notes::{Notes, default_tabs};
use crate::place::{self, Place};
use crate::span::Span;

thread_local! {
    // It only ever sees whole sequences, so nothing stays in it between two of them and one serves every screen. It
    // sets two megabytes of address space aside, which is why no screen has its own.
    static PROCESSOR: RefCell<Processor<AtOnce>> = RefCell::new(Processor::new());
}

/// Synchronised updates are applied as they come: a screen is looked at, not shown.
#[derive(Default)]
struct AtOnce;

impl Timeout for AtOnce {
    fn set_timeout(&mut self, _: Duration) {}
    fn clear_timeout(&mut self) {}
    fn pending_timeout(&self) -> bool {
        false
    }
}

pub(crate) struct Terminal {
    pub(crate) term: Term<VoidListener>,
    /// The primary screen, while the alternate one is shown.
    pub(crate) away: Option<Grid<Cell>>,
    pub(crate) notes: Notes,
    scrollback: usize,
    /// How many rows may leave the top and be kept.
    limit: usize,
    /// How many rows have left the top of the primary screen.
    pub(crate) scrolled: u64,
    /// How often that count was lost, or the rows that it counts were changed.
    pub(crate) breaks: u64,
    /// The grid's view is one row up, where it moves with every row that leaves the top: that is how they are counted.
    anchored: bool,
}

impl Terminal {
    pub(crate) fn new(size: Size, scrollback: usize) -> Self {
        let span = Span::of(size);
        let limit = span.limit(scrollback);
        let config = Config { scrolling_history: limit, osc52: Osc52::Disabled, ..Config::default() };
        Self {
            notes: Notes::new(span.rows, span.columns),
            term: Term::new(config, &span, VoidListener),
            away: None,
            scrollback,
            limit,
            scrolled: 0,
            breaks: 0,
            anchored: false,
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.term.columns()
    }

    pub(crate) fn rows(&self) -> usize {
        self.term.screen_lines()
    }

    pub(crate) fn scrollback(&self) -> usize {
        self.scrollback
    }

    /// The screen that is shown.
    pub(crate) fn grid(&self) -> &Grid<Cell> {
        self.term.grid()
    }

    /// The screen with the scrollback.
    pub(crate) fn primary(&self) -> &Grid<Cell> {
        self.away.as_ref().unwrap_or(self.term.grid())
    }

    pub(crate) fn alternate(&self) -> bool {
        self.away.is_some()
    }

    pub(crate) fn mode(&self, mode: TermMode) -> bool {
        self.term.mode().contains(mode)
    }

    /// Lets a standard sequence act.
    pub(crate) fn act(&mut self, sequence: &[u8]) {
        PROCESSOR.with_borrow_mut(|processor| processor.advance(&mut self.term, sequence));
    }

    /// Counts the rows that have left the top since the last count. Those that a scrolling region further down lost
    /// do not count: they are gone.
    pub(crate) fn tally(&mut self, counts: bool) {
        if self.away.is_some() {
            return;
        }
        let limit = self.limit;
        let grid = self.term.grid_mut();
        let (view, history) = (grid.display_offset(), grid.history_size());
        let moved = if self.anchored { view.saturating_sub(1) } else { history };
        if counts && moved > 0 {
            self.scrolled += moved as u64;
            self.breaks += u64::from(moved + 1 >= limit);
        }
        self.anchor();
    }

    /// After rows have moved: nothing follows the last one, so its text does not run on.
    pub(crate) fn moved(&mut self, counts: bool) {
        self.tally(counts);
        unwrap_last(self.term.grid_mut());
        self.edge();
    }

    /// See to a cursor that waits at the end of a row.
    fn edge(&mut self) {
        let right = self.sides().1;
        edge(self.term.grid_mut(), right);
    }

    /// After cells of the cursor's row have moved or gone.
    pub(crate) fn heal(&mut self) {
        let line = self.cursor().line;
        glyph::heal(&mut self.term.grid_mut()[line]);
    }

    fn anchor(&mut self) {
        let grid = self.term.grid_mut();
        self.anchored = grid.history_size() > 0;
        if grid.display_offset() != usize::from(self.anchored) {
            grid.scroll_display(Scroll::Bottom);
            grid.scroll_display(Scroll::Delta(1));
        }
    }

    /// The number of a visible row since the screen began.
    pub(crate) fn number(&self, row: usize) -> u64 {
        self.scrolled + row as u64
    }

    /// Shows the alternate screen.
    pub(crate) fn enter(&mut self, mode: u16) -> bool {
        if self.away.is_some() {
            return false;
        }
        let mut alternate = Grid::new(self.rows(), self.columns(), 0);
        let origin = self.mode(TermMode::ORIGIN);
        let grid = self.term.grid_mut();
        alternate.cursor = grid.cursor.clone();
        let (line, column) = self.notes.alternate_saved;
        let (line, column) = (line.min(grid.screen_lines() - 1), column.min(grid.columns() - 1));
        alternate.saved_cursor.point = Point::new(Line(line as i32), Column(column));
        if mode == 1049 {
            grid.saved_cursor = grid.cursor.clone();
            self.notes.saved_origin[0] = origin;
        }
        self.away = Some(mem::replace(grid, alternate));
        self.change();
        true
    }

    /// Shows the primary screen again.
    pub(crate) fn leave(&mut self, mode: u16) -> bool {
        let Some(primary) = self.away.take() else { return false };
        let alternate = mem::replace(self.term.grid_mut(), primary);
        let saved = alternate.saved_cursor.point;
        self.notes.alternate_saved = (usize::try_from(saved.line.0).unwrap_or(0), saved.column.0);
        if mode != 1049 {
            self.term.grid_mut().cursor = alternate.cursor;
        }
        self.change();
        self.confine();
        self.edge();
        self.notes.keyboards[1] = crate::notes::Keyboard::default();
        true
    }

    /// A full reset.
    pub(crate) fn reset(&mut self) {
        self.leave(1049);
        self.term.reset_state();
        let (rows, columns) = (self.rows(), self.columns());
        self.notes.reset(rows, columns);
        for index in 0..=crate::colour::DYNAMIC + 2 {
            self.term.reset_color(index);
        }
        self.breaks += 1;
        self.anchor();
    }

    /// What `DECSTR` resets: nothing that is on the screen, and the cursor stays where it is.
    pub(crate) fn soften(&mut self) {
        let cursor = &self.grid().cursor;
        let (point, waits) = (cursor.point, cursor.input_needs_wrap);
        self.act(b"\x1b[4l\x1b[?6l\x1b[?7h\x1b[?25h\x1b[?1l\x1b>\x1b[m");
        self.allow_sides(false);
        self.set_margins(0, self.rows());
        self.notes.shifted = false;
        self.act(b"\x0f");
        let grid = self.term.grid_mut();
        grid.cursor.charsets = Charsets::default();
        let waits = waits && point.column == grid.last_column();
        (grid.cursor.point, grid.cursor.input_needs_wrap) = (point, waits);
        grid.saved_cursor = Cursor::default();
        self.notes.saved_origin[usize::from(self.away.is_some())] = false;
    }

    /// Sets the scrolling region, and moves the cursor home.
    pub(crate) fn set_margins(&mut self, top: usize, bottom: usize) {
        self.notes.margins = (top, bottom);
        self.term.set_scrolling_region(top + 1, Some(bottom));
        self.place(0, 0);
    }

    pub(crate) fn set_tabs(&mut self, tabs: Vec<bool>) {
        let at = self.term.grid().cursor.point.column;
        self.term.clear_tabs(TabulationClearMode::All);
        for (column, _) in tabs.iter().enumerate().filter(|(_, stop)| **stop) {
            self.term.grid_mut().cursor.point.column = Column(column);
            self.term.set_horizontal_tabstop();
        }
        self.term.grid_mut().cursor.point.column = at;
        self.notes.tabs = tabs;
    }

    pub(crate) fn reset_tabs(&mut self) {
        self.set_tabs(default_tabs(self.columns()));
    }

    pub(crate) fn save_cursor(&mut self) {
        let origin = self.mode(TermMode::ORIGIN);
        self.notes.saved_origin[usize::from(self.away.is_some())] = origin;
        self.term.save_cursor_position();
    }

    pub(crate) fn restore_cursor(&mut self) {
        if self.notes.saved_origin[usize::from(self.away.is_some())] {
            self.term.set_private_mode(NamedPrivateMode::Origin.into());
        } else {
            self.term.unset_private_mode(NamedPrivateMode::Origin.into());
        }
        self.term.restore_cursor_position();
        self.confine();
        self.edge();
    }

    /// Moves the cursor one column back. With reverse wrap, the first column follows the last one of a row that runs on.
    pub(crate) fn back(&mut self) {
        let (point, first) = (self.cursor(), self.notes.margins.0 as i32);
        let wraps = self.wraps_back();
        if wraps && self.grid().cursor.input_needs_wrap {
            // It stands behind the last column, and goes back onto it.
            self.slide(usize::MAX);
        } else if wraps
            && point.column == 0
            && point.line > first
            && glyph::wrapped(&self.grid()[point.line - 1])
        {
            self.climb(-1);
            self.slide(usize::MAX);
        } else {
            self.term.backspace();
        }
    }

    /// Whether going back goes on in the row above.
    pub(crate) fn wraps_back(&self) -> bool {
        self.notes.switched(45) == Some(true) && self.mode(TermMode::LINE_WRAP)
    }

    /// Fills the screen for somebody who adjusts it: margins and the cursor go back to where they begin.
    pub(crate) fn align(&mut self) {
        self.act(b"\x1b[?6l");
        self.allow_sides(false);
        self.set_margins(0, self.rows());
        self.act(b"\x1b#8");
        self.moved(false);
    }

    /// The rows that the cursor may be on, where it is addressed absolutely.
    pub(crate) fn bounds(&self) -> (usize, usize) {
        if self.mode(TermMode::ORIGIN) { self.notes.margins } else { (0, self.rows()) }
    }

    /// Moves the cursor up or down, not past a margin that it stands within.
    pub(crate) fn climb(&mut self, down: i32) {
        let (top, bottom) = self.notes.margins;
        let rows = self.rows();
        let cursor = &mut self.term.grid_mut().cursor;
        let line = cursor.point.line.0;
        let first = if line >= top as i32 { top } else { 0 };
        let last = if line < bottom as i32 { bottom } else { rows };
        cursor.point.line = Line(line.saturating_add(down).clamp(first as i32, last as i32 - 1));
        cursor.input_needs_wrap = false;
    }

    /// Moves the cursor to a column of its row.
    pub(crate) fn slide(&mut self, column: usize) {
        let last = self.columns() - 1;
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.point.column = Column(column.min(last));
        cursor.input_needs_wrap = false;
    }

    pub(crate) fn cursor(&self) -> Point {
        self.grid().cursor.point
    }

    /// Which of the four character sets draws lines.
    pub(crate) fn draws_lines(charset: StandardCharset) -> bool {
        charset == StandardCharset::SpecialCharacterAndLineDrawing
    }

    pub(crate) fn resize(&mut self, size: Size) {
        let span = Span::of(size);
        if (span.columns, span.rows) == (self.columns(), self.rows()) {
            return;
        }
        self.limit = span.limit(self.scrollback);
        self.narrow(None);
        // The terminal resizes, and reflows, what it takes for its primary screen.
        if let Some(away) = &mut self.away {
            mem::swap(self.term.grid_mut(), away);
        }
        let grid = self.term.grid_mut();
        grid.scroll_display(Scroll::Bottom);
        let place = Place::leave(grid);
        // The grid cuts a row again for every piece it makes of it: by halves that stays cheap. And it drops what is
        // below its cursor when it becomes lower, so it becomes narrower or wider first.
        while span.columns != self.columns() {
            let (columns, rows) = (span.columns.max(self.columns() / 2), self.rows());
            self.term.resize(Span { columns, rows });
            place::park(self.term.grid_mut());
        }
        self.term.resize(Span { ..span });
        self.term.grid_mut().update_history(self.limit);
        place.find(self.term.grid_mut());
        settle(self.term.grid_mut());
        if let Some(away) = &mut self.away {
            mem::swap(self.term.grid_mut(), away);
            let alternate = self.term.grid_mut();
            alternate.resize(false, span.rows, span.columns);
            settle(alternate);
        } else {
            self.anchor();
        }
        self.notes.resize(span.rows, span.columns);
        self.breaks += 1;
    }

    /// Gives back what the grid has set aside for rows to come.
    pub(crate) fn trim(&mut self) {
        self.term.grid_mut().truncate();
        if let Some(away) = &mut self.away {
            away.truncate();
        }
    }
}
