//! What text, controls and short escapes do.

use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler, NamedMode};
use unicode_width::UnicodeWidthChar;
use wharf_sequences::{End, Osc, ScanRules, Sink};

use crate::heard::Heard;
use crate::signal::Signal;
use crate::terminal::Terminal;

/// How many characters without a width one cell holds. Those that follow are dropped: a cell must not grow for ever.
const MAX_MARKS_PER_CELL: usize = 32;

/// Output as it is read: it acts on the terminal, and leaves signals and replies.
pub(crate) struct Reading<'a> {
    pub(crate) terminal: &'a mut Terminal,
    pub(crate) heard: &'a mut Heard,
    pub(crate) clipboard: bool,
}

impl Sink for Reading<'_> {
    const RULES: ScanRules = ScanRules::MODEL;

    fn text(&mut self, bytes: &[u8], at: usize) {
        if let Some(last) = bytes.iter().rposition(|byte| *byte > b' ' && *byte != 0x7f) {
            self.heard.printed = Some((at + last) as u64);
        }
        // No text sets margins, so this is asked once for all of it.
        if self.terminal.notes.sides.is_none() {
            self.run::<false>(bytes, at);
        } else {
            self.run_within(bytes, at);
        }
        let (top, bottom) = self.terminal.notes.margins;
        if bottom == self.terminal.rows() {
            self.terminal.tally(top == 0);
        } else {
            self.terminal.moved(top == 0);
        }
    }

    fn control(&mut self, byte: u8, at: usize) {
        // A DEL within a sequence is nothing.
        if byte != 0x7f {
            self.text(&[byte], at);
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
            b"Z" => self.asking(at, Self::identify),
            b"#8" => self.terminal.align(),
            b"6" => self.terminal.back_index(),
            b"9" => self.terminal.forward_index(),
            _ if self.terminal.notes.sides.is_some() && self.escape_within(body) => {}
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
        self.asking(at, |reading| reading.sequence(whole, at));
    }

    fn osc(&mut self, osc: &Osc<'_>, at: usize) {
        self.asking(at, |reading| reading.command(osc.body, osc.end == End::Bell, at));
    }

    fn dcs(&mut self, body: &[u8], at: usize) {
        self.asking(at, |reading| reading.device_string(body));
    }
}

impl Reading<'_> {
    /// Does what may be a question, and notes where it ended if it has an answer.
    fn asking(&mut self, at: usize, act: impl FnOnce(&mut Self)) {
        let before = self.heard.replies.len();
        act(self);
        if self.heard.replies.len() > before {
            self.heard.asked = Some(at as u64);
        }
    }

    pub(crate) fn signal(&mut self, at: usize, signal: Signal) {
        self.heard.signals.push((at as u64, signal));
    }

    pub(crate) fn reply(&mut self, reply: impl AsRef<[u8]>) {
        self.heard.replies.extend_from_slice(reply.as_ref());
    }

    /// Text and controls, with margins at the sides or without.
    #[expect(clippy::inline_always, reason = "text without margins costs what it did before there were any")]
    #[inline(always)]
    fn run<const WITHIN: bool>(&mut self, bytes: &[u8], mut from: usize) {
        let inserts = self.terminal.mode(TermMode::INSERT);
        for chunk in bytes.utf8_chunks() {
            for (index, c) in chunk.valid().char_indices() {
                match c {
                    ' '..='~' if !WITHIN => self.print_simple(c),
                    '\0'..='\x1f' if WITHIN && self.control_within(c as u8) => {}
                    '\0'..='\x1f' => self.control(c as u8, from + index),
                    '\x7f'..='\u{9f}' => {}
                    _ if WITHIN => self.print_within(c),
                    _ => self.print(c),
                }
                // Insertion may have cut a wide character in two.
                if inserts {
                    self.terminal.heal();
                }
            }
            // A lone byte of the upper half is a control that nobody means any more.
            if !matches!(chunk.invalid(), [] | [0x80..=0x9f]) {
                if WITHIN {
                    self.print_within(char::REPLACEMENT_CHARACTER);
                } else {
                    self.print(char::REPLACEMENT_CHARACTER);
                }
            }
            from += chunk.valid().len() + chunk.invalid().len();
        }
    }

    #[cold]
    #[inline(never)]
    fn run_within(&mut self, bytes: &[u8], at: usize) {
        self.run::<true>(bytes, at);
    }

    #[inline]
    fn print_simple(&mut self, c: char) {
        self.terminal.notes.last = Some(c);
        self.terminal.term.input(c);
    }

    pub(crate) fn print(&mut self, c: char) {
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
        let (left, right) = self.terminal.sides();
        let within = self.terminal.notes.sides.is_some();
        let most = (right - left) * self.terminal.rows() + usize::from(within) * self.terminal.columns();
        let (inserts, wraps) =
            (self.terminal.mode(TermMode::INSERT), self.terminal.mode(TermMode::LINE_WRAP));
        let width = c.width().unwrap_or(1).max(1);
        let mut rest = usize::from(times).min(most);
        while rest > 0 {
            let room = self.terminal.room() / width;
            if room == 0 && !wraps {
                // It stays where it is: once more is as good as often.
                self.print_once(c, within, inserts);
                break;
            }
            // Without any margin a scroll only turns the rows round.
            let box_scrolls = within || self.terminal.notes.margins.0 > 0;
            if room == 0 && box_scrolls && right - left >= width {
                self.terminal.make_rows(rest.div_ceil((right - left) / width));
            }
            let mut count = room.clamp(1, rest);
            let column = self.terminal.cursor().column.0;
            if inserts && column < left {
                // Before the left margin nothing gives way.
                count = count.min(((left - column) / width).max(1));
            }
            if inserts && count > 1 {
                // The row gives way once, and not for every character.
                self.sequence(format!("\x1b[{}@", count * width).as_bytes(), 0);
                self.terminal.term.unset_mode(NamedMode::Insert.into());
                (0..count).for_each(|_| self.print_once(c, within, false));
                self.terminal.term.set_mode(NamedMode::Insert.into());
                self.terminal.heal();
            } else {
                (0..count).for_each(|_| self.print_once(c, within, inserts));
            }
            rest -= count;
        }
        let counts = self.terminal.notes.margins.0 == 0;
        self.terminal.moved(counts);
    }

    fn print_once(&mut self, c: char, within: bool, inserts: bool) {
        if within {
            self.print_within(c);
        } else {
            self.print(c);
        }
        if inserts {
            self.terminal.heal();
        }
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
        row[Column(column)].zerowidth().is_some_and(|marks| marks.len() >= MAX_MARKS_PER_CELL)
    }

    #[expect(clippy::inline_always, reason = "two callers, of which one is hot")]
    #[inline(always)]
    fn control(&mut self, byte: u8, at: usize) {
        let term = &mut self.terminal.term;
        match byte {
            0x07 => self.signal(at, Signal::Bell),
            0x08 => self.terminal.back(),
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
