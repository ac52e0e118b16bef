//! The bytes that make another terminal show the same.

use std::fmt::Write as _;

use alacritty_terminal::grid::{Cursor, Dimensions, Grid, Row};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Hyperlink};
use alacritty_terminal::vte::ansi::CharsetIndex;

use crate::Screen;
use crate::colour;
use crate::glyph;
use crate::notes::{REMEMBERED, default_tabs};
use crate::replies::cursor_style;
use crate::style::Style;
use crate::terminal::Terminal;

impl Screen {
    /// The bytes that make a fresh terminal of the same size show both screens and what has scrolled away, with the
    /// cursor, colours, margins, title and input modes as they are. They ask nothing, ring no bell and send no message.
    ///
    /// An unfinished sequence stands at their end, so that output goes on with the byte after the last one fed.
    pub fn repaint(&self) -> Vec<u8> {
        self.repaint_last(usize::MAX)
    }

    /// The same, with no more than so many of the rows that have scrolled away.
    pub fn repaint_last(&self, scrollback: usize) -> Vec<u8> {
        let mut bytes = paint(&self.terminal, scrollback);
        bytes.extend_from_slice(&self.scanner.unfinished());
        bytes
    }
}

/// The bytes for all but an unfinished sequence.
pub(crate) fn paint(terminal: &Terminal, scrollback: usize) -> Vec<u8> {
    let mut painter = Painter { out: String::new(), style: Style::default(), link: None };
    painter.terminal(terminal, scrollback);
    painter.out.into_bytes()
}

struct Painter {
    out: String,
    /// What the other terminal's next character will look like.
    style: Style,
    link: Option<Hyperlink>,
}

impl Painter {
    fn terminal(&mut self, terminal: &Terminal, scrollback: usize) {
        // A terminal that is not quite fresh: no margins, no modes that change what printing means, a clear screen.
        self.out.push_str(
            "\x1b[0m\x1b]8;;\x1b\\\x1b[r\x1b[?69l\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b(B\x0f\x1b[H\x1b[J",
        );
        self.colours(terminal);
        let notes = &terminal.notes;
        let primary = terminal.primary();
        self.flow(primary, scrollback);
        self.keyboard(&notes.keyboards[0]);
        if terminal.alternate() {
            self.saved(primary, notes.saved_origin[0], 0);
            self.cursor(primary, &primary.cursor, (0, 0));
            // Both show the alternate screen; the one saves the cursor as well.
            let saves = primary.saved_cursor == primary.cursor && !notes.saved_origin[0];
            self.out.push_str(if saves { "\x1b[?1049h" } else { "\x1b[?1047h" });
            self.plain();
            self.out.push_str("\x1b(B\x1b[H");
            let grid = terminal.grid();
            self.flow(grid, 0);
            self.keyboard(&notes.keyboards[1]);
        }
        self.sides(terminal);
        self.rest(terminal);
    }

    /// The cursor that was saved on the screen that is shown, and the margins at the sides. A terminal that does not know
    /// such margins saves its cursor instead, so the saved one comes after them wherever it can be made there.
    fn sides(&mut self, terminal: &Terminal) {
        let (grid, notes) = (terminal.grid(), &terminal.notes);
        let cursor = &grid.saved_cursor;
        let origin = notes.saved_origin[usize::from(terminal.alternate())];
        let (waits, last) = (cursor.input_needs_wrap, cursor.point.column == grid.last_column());
        let first = notes.sides.is_none() || (waits && last) || (origin && !waits);
        if first {
            self.saved(grid, origin, 0);
        }
        if notes.sided {
            self.out.push_str("\x1b[?69h");
        }
        if let Some((left, right)) = notes.sides {
            let _ = write!(self.out, "\x1b[{};{right}s", left + 1);
            if !first {
                // A cursor that nobody has saved.
                self.out.push_str("\x1b(B\x1b)B\x1b*B\x1b+B\x1b[H\x1b7");
                self.saved(grid, origin, left);
            }
        }
    }

    /// The rows as they came: those that have scrolled away scroll away again.
    fn flow(&mut self, grid: &Grid<Cell>, scrollback: usize) {
        let first = -(grid.history_size().min(scrollback) as i32);
        let last = grid.screen_lines() as i32 - 1;
        let mut runs_on = false;
        for line in first..=last {
            let row = &grid[Line(line)];
            let wraps = line < last && glyph::wrapped(row);
            self.row(row, wraps, runs_on);
            if let Some(gap) = row.last().filter(|cell| wraps && glyph::is_gap(cell)) {
                self.gap(gap, &grid[Line(line + 1)]);
            }
            runs_on = wraps;
            if !wraps && line < last {
                // A new row takes the background of the moment.
                self.plain();
                self.out.push_str("\r\n");
            }
        }
        self.plain();
    }

    /// A wide character left the last cell of a row free. Where it has gone since, another one does so.
    fn gap(&mut self, gap: &Cell, next: &Row<Cell>) {
        let style = Style::of(gap);
        if glyph::glyphs(next).next().is_none_or(|first| first.width == 1 || !style.fits(first.cell)) {
            self.look(gap);
            self.out.push_str("\u{3000}\r");
            self.plain();
            self.out.push_str("\x1b[K");
        }
    }

    /// One row: all of it where the text runs on, else as far as something is seen.
    fn row(&mut self, row: &Row<Cell>, wraps: bool, runs_on: bool) {
        let plain = Cell::default();
        let seen = row.into_iter().rposition(|cell| !glyph::same_look(cell, &plain)).map_or(0, |at| at + 1);
        let until = if wraps { row.len() } else { seen.max(usize::from(runs_on)) };
        let mut at = 0;
        for glyph in glyph::glyphs(row) {
            if at >= until {
                break;
            }
            self.look(glyph.cell);
            glyph.push_to(&mut self.out);
            // The character that made the row may have coloured it.
            if at == 0 && runs_on && glyph.width < row.len() && !self.style.bare() {
                let style = self.style.clone();
                self.out.push_str("\x1b[0m\x1b[K");
                self.out.push_str(&style.sequence());
            }
            at += glyph.width;
        }
    }

    fn look(&mut self, cell: &Cell) {
        if !self.style.fits(cell) {
            let style = Style::of(cell);
            self.out.push_str(&style.sequence());
            self.linked(style.link.clone());
            self.style = style;
        }
    }

    fn linked(&mut self, link: Option<Hyperlink>) {
        if self.link == link {
            return;
        }
        match &link {
            Some(link) if link.id().is_empty() => {
                let _ = write!(self.out, "\x1b]8;;{}\x1b\\", link.uri());
            }
            Some(link) => {
                let _ = write!(self.out, "\x1b]8;id={};{}\x1b\\", link.id(), link.uri());
            }
            None => self.out.push_str("\x1b]8;;\x1b\\"),
        }
        self.link = link;
    }

    fn plain(&mut self) {
        self.look(&Cell::default());
    }

    /// Puts the cursor where one stands, with what it will write next. Rows and columns count from `origin`.
    fn cursor(&mut self, grid: &Grid<Cell>, cursor: &Cursor<Cell>, (top, left): (usize, usize)) {
        let point = cursor.point;
        let (line, column) = (point.line.0 - top as i32, point.column.0 - left);
        let _ = write!(self.out, "\x1b[{};{}H", line + 1, column + 1);
        if cursor.input_needs_wrap
            && let Some(last) = glyph::ending(&grid[point.line], point.column.0)
        {
            // Only a character printed in the last column, or at the margin, leaves the cursor waiting there.
            if last.width == 2 {
                self.out.push_str("\x1b[D");
            }
            self.look(last.cell);
            last.push_to(&mut self.out);
        }
        self.look(&cursor.template);
        let sets = [
            (CharsetIndex::G0, '('),
            (CharsetIndex::G1, ')'),
            (CharsetIndex::G2, '*'),
            (CharsetIndex::G3, '+'),
        ];
        for (index, designator) in sets {
            let set = if Terminal::draws_lines(cursor.charsets[index]) { '0' } else { 'B' };
            let _ = write!(self.out, "\x1b{designator}{set}");
        }
    }

    /// The cursor that the program has saved. In origin mode columns count from `left`.
    fn saved(&mut self, grid: &Grid<Cell>, origin: bool, left: usize) {
        let cursor = &grid.saved_cursor;
        if *cursor == Cursor::default() && !origin {
            return;
        }
        if origin {
            self.out.push_str("\x1b[?6h");
        }
        self.cursor(grid, cursor, (0, if origin { left } else { 0 }));
        self.out.push_str("\x1b7\x1b(B");
        let line = cursor.point.line;
        if cursor.input_needs_wrap
            && cursor.point.column == grid.last_column()
            && grid[line].last().is_some_and(|cell| glyph::wrapped(&grid[line]) && !glyph::is_gap(cell))
            && line < grid.bottommost_line()
            && let Some(next) = glyph::glyphs(&grid[line + 1]).next()
        {
            // The character was printed again, so the row must run on again as well.
            self.look(next.cell);
            next.push_to(&mut self.out);
        }
        if origin {
            self.out.push_str("\x1b[?6l");
        }
    }

    fn keyboard(&mut self, keyboard: &crate::notes::Keyboard) {
        if keyboard.base != 0 {
            let _ = write!(self.out, "\x1b[={}u", keyboard.base);
        }
        for flags in &keyboard.stack {
            let _ = write!(self.out, "\x1b[>{flags}u");
        }
    }

    fn colours(&mut self, terminal: &Terminal) {
        let colors = terminal.term.colors();
        for index in 0..colour::DYNAMIC {
            if let Some(rgb) = colors[index] {
                let _ = write!(self.out, "\x1b]4;{index};{}\x1b\\", colour::answer(rgb));
            }
        }
        for offset in 0..3 {
            if let Some(rgb) = colors[colour::DYNAMIC + offset] {
                let _ = write!(self.out, "\x1b]{};{}\x1b\\", 10 + offset, colour::answer(rgb));
            }
        }
    }

    /// What both screens share, and at last the cursor.
    fn rest(&mut self, terminal: &Terminal) {
        let notes = &terminal.notes;
        if !notes.title.is_empty() {
            let _ = write!(self.out, "\x1b]2;{}\x1b\\", notes.title);
        }
        if notes.tabs != default_tabs(terminal.columns()) {
            self.out.push_str("\x1b[3g");
            for column in (0..notes.tabs.len()).filter(|column| notes.tabs[*column]) {
                let _ = write!(self.out, "\x1b[{}G\x1bH", column + 1);
            }
        }
        let (top, bottom) = notes.margins;
        if (top, bottom) != (0, terminal.rows()) {
            let _ = write!(self.out, "\x1b[{};{}r", top + 1, bottom);
        }
        let style = terminal.term.cursor_style();
        if cursor_style(style) != 2 {
            let _ = write!(self.out, "\x1b[{} q", cursor_style(style));
        }
        if terminal.mode(TermMode::ORIGIN) {
            self.out.push_str("\x1b[?6h");
        }
        let grid = terminal.grid();
        self.cursor(grid, &grid.cursor, (terminal.bounds().0, terminal.side_bounds().0));
        self.out.push(if notes.shifted { '\x0e' } else { '\x0f' });
        self.modes(terminal);
    }

    fn modes(&mut self, terminal: &Terminal) {
        let has = |mode| terminal.mode(mode);
        let normal: [(TermMode, &str); 11] = [
            (TermMode::APP_CURSOR, "\x1b[?1h"),
            (TermMode::MOUSE_REPORT_CLICK, "\x1b[?1000h"),
            (TermMode::MOUSE_DRAG, "\x1b[?1002h"),
            (TermMode::MOUSE_MOTION, "\x1b[?1003h"),
            (TermMode::FOCUS_IN_OUT, "\x1b[?1004h"),
            (TermMode::UTF8_MOUSE, "\x1b[?1005h"),
            (TermMode::SGR_MOUSE, "\x1b[?1006h"),
            (TermMode::BRACKETED_PASTE, "\x1b[?2004h"),
            (TermMode::APP_KEYPAD, "\x1b="),
            (TermMode::INSERT, "\x1b[4h"),
            (TermMode::LINE_FEED_NEW_LINE, "\x1b[20h"),
        ];
        for (mode, sequence) in normal {
            if has(mode) {
                self.out.push_str(sequence);
            }
        }
        for (mode, sequence) in [
            (TermMode::LINE_WRAP, "\x1b[?7l"),
            (TermMode::SHOW_CURSOR, "\x1b[?25l"),
            (TermMode::ALTERNATE_SCROLL, "\x1b[?1007l"),
            (TermMode::URGENCY_HINTS, "\x1b[?1042l"),
        ] {
            if !has(mode) {
                self.out.push_str(sequence);
            }
        }
        for mode in REMEMBERED {
            if terminal.notes.switched(mode) == Some(true) {
                let _ = write!(self.out, "\x1b[?{mode}h");
            }
        }
        if terminal.notes.modify_other_keys != 0 {
            let _ = write!(self.out, "\x1b[>4;{}m", terminal.notes.modify_other_keys);
        }
    }
}
