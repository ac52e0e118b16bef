//! Implements the terminal model: feed output, read rows, modes, title and changes.

use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use wharf_model::Size;
use wharf_sequences::Scanner;

use crate::changes::{Changes, Track};
use crate::glyph;
use crate::heard::Heard;
use crate::modes::{Modes, Mouse, MouseEncoding};
use crate::reading::Reading;
use crate::row::{self, TerminalRow};
use crate::signal::{ProgressReport, ShellPhase, StatusReport};
use crate::terminal::Terminal;

/// A terminal without a window: output goes in, and what stands on the screen can be asked for.
pub struct Screen {
    pub(crate) size: Size,
    pub(crate) scanner: Scanner,
    pub(crate) terminal: Terminal,
    pub(crate) track: Track,
    pub(crate) generation: u64,
    clipboard: bool,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen")
            .field("size", &self.size)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl Screen {
    /// An empty screen that keeps as many rows that scroll away.
    pub fn new(size: Size, scrollback: usize) -> Self {
        Self {
            size,
            scanner: Scanner::default(),
            terminal: Terminal::new(size, scrollback),
            track: Track::new(),
            generation: 0,
            clipboard: false,
        }
    }

    /// Takes the next piece of output. However output is cut into pieces, the screen, the signals and the replies are
    /// the same.
    pub fn feed(&mut self, bytes: &[u8]) -> Heard {
        let mut heard = Heard::default();
        if !bytes.is_empty() {
            self.generation += 1;
            let mut reading =
                Reading { terminal: &mut self.terminal, heard: &mut heard, clipboard: self.clipboard };
            self.scanner.feed(bytes, &mut reading);
        }
        heard
    }

    /// Changes the size. Text runs on in more or fewer rows; none of it is lost while the scrollback has room.
    pub fn resize(&mut self, size: Size) {
        if size != self.size {
            self.size = size;
            self.generation += 1;
            self.terminal.resize(size);
        }
    }

    /// Whether signals carry what a program wants to put into the clipboard. They do not, unless told so.
    pub fn allow_clipboard(&mut self, allow: bool) {
        self.clipboard = allow;
    }

    /// Gives back memory that was set aside for output to come; for a session that has gone quiet.
    pub fn trim(&mut self) {
        self.terminal.trim();
    }

    /// The size that was asked for.
    pub fn size(&self) -> Size {
        self.size
    }

    /// A number that grows with every change, and says nothing else.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether no sequence or character is unfinished.
    pub fn rests(&self) -> bool {
        self.scanner.rests()
    }

    /// How the program wants its input.
    pub fn modes(&self) -> Modes {
        let terminal = &self.terminal;
        let has = |mode| terminal.mode(mode);
        let notes = &terminal.notes;
        let switched = |mode| notes.switched(mode).unwrap_or(false);
        let cursor = terminal.cursor();
        Modes {
            bracketed_paste: has(TermMode::BRACKETED_PASTE),
            alternate: terminal.alternate(),
            application_cursor: has(TermMode::APP_CURSOR),
            application_keypad: has(TermMode::APP_KEYPAD),
            mouse: if has(TermMode::MOUSE_MOTION) {
                Mouse::Motion
            } else if has(TermMode::MOUSE_DRAG) {
                Mouse::Drag
            } else if has(TermMode::MOUSE_REPORT_CLICK) {
                Mouse::Click
            } else if switched(9) {
                Mouse::Press
            } else {
                Mouse::Off
            },
            mouse_encoding: if switched(1016) {
                MouseEncoding::Pixels
            } else if has(TermMode::SGR_MOUSE) {
                MouseEncoding::Sgr
            } else if switched(1015) {
                MouseEncoding::Urxvt
            } else if has(TermMode::UTF8_MOUSE) {
                MouseEncoding::Utf8
            } else {
                MouseEncoding::Bytes
            },
            focus: has(TermMode::FOCUS_IN_OUT),
            kitty: notes.keyboards[usize::from(terminal.alternate())].flags(),
            modify_other_keys: notes.modify_other_keys,
            cursor_visible: has(TermMode::SHOW_CURSOR),
            cursor: (cursor.line.0 as u16, cursor.column.0 as u16),
            synchronized: notes.synchronized,
            wrap: has(TermMode::LINE_WRAP),
        }
    }

    /// The window's title; empty where none was set.
    pub fn title(&self) -> &str {
        &self.terminal.notes.title
    }

    /// The program's working directory, if it said so.
    pub fn directory(&self) -> Option<&str> {
        self.terminal.notes.directory.as_deref()
    }

    /// How far the program is, if it said so.
    pub fn progress(&self) -> Option<ProgressReport> {
        self.terminal.notes.progress
    }

    /// What the program says it is doing, if it does.
    pub fn status(&self) -> Option<&StatusReport> {
        self.terminal.notes.status.as_ref()
    }

    /// Where the shell is, if it marks its prompts.
    pub fn shell_phase(&self) -> Option<ShellPhase> {
        self.terminal.notes.phase
    }

    /// The visible rows as text.
    pub fn rows(&self) -> Vec<String> {
        let grid = self.terminal.grid();
        (0..self.terminal.rows()).map(|at| trimmed(glyph::text(&grid[Line(at as i32)]))).collect()
    }

    /// The visible rows, with what makes lines of them.
    pub fn visible(&self) -> Vec<TerminalRow> {
        let grid = self.terminal.grid();
        let row = |at: usize| {
            let row = &grid[Line(at as i32)];
            let mark =
                (!self.terminal.alternate()).then(|| self.terminal.notes.mark_at(self.terminal.number(at)));
            TerminalRow { text: glyph::text(row), wrapped: glyph::wrapped(row), mark: mark.flatten() }
        };
        (0..self.terminal.rows()).map(row).collect()
    }

    /// All lines of the primary screen, those that have scrolled away included, with wrapped rows joined.
    pub fn all(&self) -> Vec<String> {
        let mut lines = row::lines(self.terminal.primary());
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// The last lines of the screen that is shown, those that have scrolled away included. Empty ones at the end do
    /// not count.
    pub fn lines(&self, count: usize) -> Vec<String> {
        let mut lines = row::lines(self.terminal.grid());
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines.split_off(lines.len().saturating_sub(count))
    }

    /// What has changed since a cursor that an earlier call gave. One that is unknown or too old gives everything.
    pub fn since(&mut self, cursor: &str) -> Changes {
        self.track.since(cursor, &self.terminal, self.generation)
    }
}

fn trimmed(mut text: String) -> String {
    text.truncate(text.trim_end_matches(' ').len());
    text
}
