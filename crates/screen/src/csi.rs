//! What control sequences do: all that the grid does not do, or does not do right.

use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Handler, TabulationClearMode};
use wharf_sequences::Csi;

use crate::glyph;
use crate::reading::Reading;
use crate::signal::Signal;

impl Reading<'_> {
    pub(crate) fn sequence(&mut self, whole: &[u8], at: usize) {
        // The most frequent one by far.
        if whole.ends_with(b"m") && !matches!(whole.get(2), Some(b'<'..=b'?')) {
            return self.terminal.act(whole);
        }
        let Some(csi) = whole.get(2..).and_then(Csi::parse) else { return };
        if self.terminal.notes.sides.is_some() && self.sequence_within(&csi) {
            return;
        }
        match (csi.marker, csi.intermediates, csi.action) {
            (0, b"", b'A' | b'F') => self.rise(&csi, -i32::from(csi.count())),
            (0, b"", b'B' | b'e' | b'E') => self.rise(&csi, csi.count().into()),
            (0, b"", b'D') if self.terminal.wraps_back() => {
                let most = self.terminal.columns() * self.terminal.rows();
                for _ in 0..usize::from(csi.count()).min(most) {
                    self.terminal.back();
                }
            }
            (0, b"", b'G' | b'`') => self.terminal.slide(usize::from(csi.count()) - 1),
            (0, b"", b'J') => self.clear(csi.number(0), at),
            (0, b"", b'b') => self.repeat(csi.count()),
            (0, b"", b'I' | b'Z') => {
                let most = self.terminal.columns() as u16;
                let count = csi.count().min(most);
                self.terminal.act(format!("\x1b[{count}{}", csi.action as char).as_bytes());
                // The grid would still wrap at the next character, wherever the cursor is now.
                self.terminal.slide(self.terminal.cursor().column.0);
                self.terminal.confine();
            }
            (0, b"", b'g') => self.clear_tabs(csi.number(0)),
            (b'?', b"", b'W') if csi.number(0) == 5 => self.terminal.reset_tabs(),
            (0, b"", b'r') => self.set_margins(&csi),
            (0, b"", b's') if self.terminal.notes.sided => self.set_sides(&csi),
            (0, b"", b's') => self.terminal.save_cursor(),
            (0, b"'", b'}' | b'~') => self.columns(&csi),
            (0, b"$", b'x') => self.fill_rectangle(&csi),
            (0, b"$", b'z') => self.erase_rectangle(&csi),
            (0, b"$", b'v') => self.copy_rectangle(&csi),
            (0, b"", b'u') => self.terminal.restore_cursor(),
            (0, b"", b'M') => {
                // Lines deleted at the very top go into the scrollback; others are gone.
                let counts = self.terminal.cursor().line == 0;
                self.terminal.act(whole);
                self.terminal.moved(counts);
            }
            (0, b"", b'L' | b'S' | b'T') => {
                self.terminal.act(whole);
                let counts = self.terminal.notes.margins.0 == 0;
                self.terminal.moved(counts);
            }
            (0, b"", b'@' | b'P' | b'X' | b'K') => {
                self.terminal.act(whole);
                self.terminal.heal();
            }
            (0, b"!", b'p') => self.terminal.soften(),
            (b'?', b"", b'h' | b'l') => {
                for mode in csi.numbers() {
                    self.switch(mode, csi.action == b'h', at);
                }
            }
            (0, b"", b't') => self.window(csi.number(0), at),
            (b'>', b"", b'm') if csi.number(0) == 4 => {
                self.terminal.notes.modify_other_keys = csi.number(1).min(3) as u8;
            }
            (b'>' | b'<' | b'=', b"", b'u') => self.keyboard(&csi),
            _ => {
                if !self.answer(&csi) {
                    self.terminal.act(whole);
                }
            }
        }
    }

    fn rise(&mut self, csi: &Csi<'_>, down: i32) {
        self.terminal.climb(down);
        if matches!(csi.action, b'E' | b'F') {
            self.terminal.slide(0);
        }
    }

    fn clear(&mut self, what: u16, at: usize) {
        let terminal = &mut *self.terminal;
        match what {
            1 => {
                // The grid leaves the first row alone when the cursor is on the second.
                if terminal.cursor().line == 1 {
                    terminal.term.grid_mut().reset_region(..Line(1));
                }
                terminal.act(b"\x1b[1J");
                terminal.heal();
            }
            2 => {
                let grid = terminal.grid();
                let blank = (0..terminal.rows()).all(|row| glyph::is_blank(&grid[Line(row as i32)]));
                if blank {
                    // The grid would move one empty row into the scrollback.
                    terminal.term.grid_mut().reset_region(..);
                } else {
                    terminal.act(b"\x1b[2J");
                    terminal.tally(true);
                }
                self.signal(at, Signal::Cleared);
            }
            3 => {
                terminal.act(b"\x1b[3J");
                terminal.breaks += 1;
                terminal.tally(false);
                self.signal(at, Signal::Cleared);
            }
            _ => {
                terminal.act(b"\x1b[J");
                terminal.heal();
            }
        }
    }

    fn clear_tabs(&mut self, what: u16) {
        let column = self.terminal.cursor().column.0;
        let notes = &mut self.terminal.notes;
        match what {
            0 => {
                notes.tabs[column] = false;
                self.terminal.term.clear_tabs(TabulationClearMode::Current);
            }
            3 => {
                notes.tabs.fill(false);
                self.terminal.term.clear_tabs(TabulationClearMode::All);
            }
            _ => {}
        }
    }

    fn set_margins(&mut self, csi: &Csi<'_>) {
        let rows = self.terminal.rows();
        let top = usize::from(csi.count()) - 1;
        let bottom = match csi.number(1) {
            0 => rows,
            bottom => usize::from(bottom).min(rows),
        };
        if top + 1 < bottom || (rows == 1 && top == 0) {
            self.terminal.set_margins(top, bottom);
        }
    }

    fn set_sides(&mut self, csi: &Csi<'_>) {
        let columns = self.terminal.columns();
        let left = usize::from(csi.count()) - 1;
        let right = match csi.number(1) {
            0 => columns,
            right => usize::from(right).min(columns),
        };
        if left + 1 < right {
            self.terminal.set_sides(left, right);
        }
    }

    fn switch(&mut self, mode: u16, on: bool, at: usize) {
        match mode {
            47 | 1047 | 1049 => {
                let switched = if on { self.terminal.enter(mode) } else { self.terminal.leave(mode) };
                if switched {
                    self.signal(at, Signal::AltScreen(on));
                }
            }
            1048 if on => self.terminal.save_cursor(),
            1048 => self.terminal.restore_cursor(),
            2026 => self.terminal.notes.synchronized = on,
            66 if on => self.terminal.term.set_keypad_application_mode(),
            66 => self.terminal.term.unset_keypad_application_mode(),
            // Clears the screen and its margins.
            3 => {
                self.terminal.allow_sides(false);
                self.terminal.set_margins(0, self.terminal.rows());
                self.terminal.act(if on { b"\x1b[?3h" } else { b"\x1b[?3l" });
            }
            6 => {
                self.terminal.act(if on { b"\x1b[?6h" } else { b"\x1b[?6l" });
                self.terminal.place(0, 0);
            }
            69 => self.terminal.allow_sides(on),
            _ => {
                if !self.terminal.notes.switch(mode, on) {
                    let end = if on { 'h' } else { 'l' };
                    self.terminal.act(format!("\x1b[?{mode}{end}").as_bytes());
                }
            }
        }
    }

    fn keyboard(&mut self, csi: &Csi<'_>) {
        let keyboard = &mut self.terminal.notes.keyboards[usize::from(self.terminal.alternate())];
        match csi.marker {
            b'>' => keyboard.push(csi.number(0)),
            b'<' => keyboard.pop(csi.count()),
            _ => keyboard.set(csi.number(0), csi.number(1)),
        }
    }

    fn window(&mut self, what: u16, at: usize) {
        match what {
            22 => self.terminal.notes.push_title(),
            23 => {
                if let Some(title) = self.terminal.notes.pop_title() {
                    self.set_title(title, at);
                }
            }
            _ => self.answer_window(what),
        }
    }

    pub(crate) fn set_title(&mut self, title: String, at: usize) {
        if self.terminal.notes.title != title {
            self.terminal.notes.title.clone_from(&title);
            self.signal(at, Signal::Title(title));
        }
    }

    /// Whether a mode is on; `None` where it is not known.
    pub(crate) fn private_mode(&self, mode: u16) -> Option<bool> {
        let flag = match mode {
            1 => TermMode::APP_CURSOR,
            6 => TermMode::ORIGIN,
            7 => TermMode::LINE_WRAP,
            12 => return Some(self.terminal.term.cursor_style().blinking),
            25 => TermMode::SHOW_CURSOR,
            66 => TermMode::APP_KEYPAD,
            69 => return Some(self.terminal.notes.sided),
            47 | 1047 | 1049 => return Some(self.terminal.alternate()),
            1000 => TermMode::MOUSE_REPORT_CLICK,
            1002 => TermMode::MOUSE_DRAG,
            1003 => TermMode::MOUSE_MOTION,
            1004 => TermMode::FOCUS_IN_OUT,
            1005 => TermMode::UTF8_MOUSE,
            1006 => TermMode::SGR_MOUSE,
            1007 => TermMode::ALTERNATE_SCROLL,
            1042 => TermMode::URGENCY_HINTS,
            2004 => TermMode::BRACKETED_PASTE,
            2026 => return Some(self.terminal.notes.synchronized),
            _ => return self.terminal.notes.switched(mode),
        };
        Some(self.terminal.mode(flag))
    }
}
