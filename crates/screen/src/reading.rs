//! What text, controls and short escapes do.

use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler};
use unicode_width::UnicodeWidthChar;

use crate::heard::Heard;
use crate::scanner::Sink;
use crate::signal::Signal;
use crate::terminal::Terminal;

/// How many characters without a width one cell holds. Those that follow are dropped: a cell must not grow for ever.
const MOST_MARKS: usize = 32;

/// Output as it is read: it acts on the terminal, and leaves signals and replies.
pub(crate) struct Reading<'a> {
    pub(crate) terminal: &'a mut Terminal,
    pub(crate) heard: &'a mut Heard,
    pub(crate) clipboard: bool,
}

impl Sink for Reading<'_> {
    fn text(&mut self, bytes: &[u8], at: usize) {
        let mut from = at;
        let inserts = self.terminal.mode(TermMode::INSERT);
        for chunk in bytes.utf8_chunks() {
            for (index, c) in chunk.valid().char_indices() {
                match c {
                    ' '..='~' => self.print_simple(c),
                    '\0'..='\x1f' => self.control(c as u8, from + index),
                    '\x7f'..='\u{9f}' => {}
                    _ => self.print(c),
                }
                // Insertion may have cut a wide character in two.
                if inserts {
                    self.terminal.heal();
                }
            }
            // A lone byte of the upper half is a control that nobody means any more.
            if !matches!(chunk.invalid(), [] | [0x80..=0x9f]) {
                self.print(char::REPLACEMENT_CHARACTER);
            }
            from += chunk.valid().len() + chunk.invalid().len();
        }
        let (top, bottom) = self.terminal.notes.margins;
        if bottom == self.terminal.rows() {
            self.terminal.tally(top == 0);
        } else {
            self.terminal.moved(top == 0);
        }
    }

    fn escape(&mut self, body: &[u8], at: usize) {
        match body {
            b"7" => self.terminal.save_cursor(),
            b"8" => self.terminal.restore_cursor(),
            b"c" => {
                let alternate = self.terminal.alternate();
                let titled = !self.terminal.notes.title.is_empty();
                self.terminal.reset();
                if alternate {
                    self.signal(at, Signal::AltScreen(false));
                }
                if titled {
                    self.signal(at, Signal::Title(String::new()));
                }
                self.signal(at, Signal::Cleared);
            }
            b"H" => {
                let column = self.terminal.cursor().column.0;
                self.terminal.notes.tabs[column] = true;
                self.terminal.term.set_horizontal_tabstop();
            }
            b"Z" => self.identify(),
            _ => {
                self.terminal.act(&[b"\x1b", body].concat());
                if matches!(body, b"D" | b"M") {
                    self.terminal.term.grid_mut().cursor.input_needs_wrap = false;
                }
                let counts = self.terminal.notes.margins.0 == 0;
                self.terminal.moved(counts);
            }
        }
    }

    fn csi(&mut self, whole: &[u8], at: usize) {
        self.sequence(whole, at);
    }

    fn osc(&mut self, body: &[u8], bell: bool, at: usize) {
        self.command(body, bell, at);
    }

    fn dcs(&mut self, body: &[u8], _: usize) {
        self.device_string(body);
    }
}

impl Reading<'_> {
    pub(crate) fn signal(&mut self, at: usize, signal: Signal) {
        self.heard.signals.push((at as u64, signal));
    }

    pub(crate) fn reply(&mut self, reply: impl AsRef<[u8]>) {
        self.heard.replies.extend_from_slice(reply.as_ref());
    }

    #[inline]
    fn print_simple(&mut self, c: char) {
        self.terminal.notes.last = Some(c);
        self.terminal.term.input(c);
    }

    fn print(&mut self, c: char) {
        match c.width() {
            Some(0) if self.crowded() => {}
            Some(0) => self.terminal.term.input(c),
            Some(2) if self.cannot_wrap() => {}
            _ => self.print_simple(c),
        }
    }

    /// Whether a wide character has no room, and may not take the next row. The grid would note a wrap all the same.
    fn cannot_wrap(&self) -> bool {
        let last = self.terminal.cursor().column.0 + 1 >= self.terminal.columns();
        last && !self.terminal.mode(TermMode::LINE_WRAP)
    }

    /// Prints the last character again.
    pub(crate) fn repeat(&mut self, times: u16) {
        let Some(c) = self.terminal.notes.last else { return };
        // More than fills the screen shows nothing new, and would only burn time.
        let most = self.terminal.columns() * self.terminal.rows();
        let inserts = self.terminal.mode(TermMode::INSERT);
        for _ in 0..usize::from(times).min(most) {
            self.print(c);
            if inserts {
                self.terminal.heal();
            }
        }
        let counts = self.terminal.notes.margins.0 == 0;
        self.terminal.moved(counts);
    }

    /// Whether the cell that a character without width would join is full.
    fn crowded(&self) -> bool {
        let grid = self.terminal.grid();
        let cursor = &grid.cursor;
        let row = &grid[cursor.point.line];
        let mut column = cursor.point.column.0;
        if !cursor.input_needs_wrap {
            column = column.saturating_sub(1);
        }
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        row[Column(column)].zerowidth().is_some_and(|marks| marks.len() >= MOST_MARKS)
    }

    fn control(&mut self, byte: u8, at: usize) {
        let term = &mut self.terminal.term;
        match byte {
            0x07 => self.signal(at, Signal::Bell),
            0x08 => term.backspace(),
            b'\t' => term.put_tab(1),
            b'\n' | 0x0b | 0x0c => {
                term.newline();
                self.terminal.term.grid_mut().cursor.input_needs_wrap = false;
            }
            b'\r' => term.carriage_return(),
            0x0e => {
                self.terminal.notes.shifted = true;
                term.set_active_charset(CharsetIndex::G1);
            }
            0x0f => {
                self.terminal.notes.shifted = false;
                term.set_active_charset(CharsetIndex::G0);
            }
            // Among the rest is the question for an answerback, which is never answered.
            _ => {}
        }
    }
}
