//! Answers to the questions that programs ask a terminal. Nothing that a program could have put there is ever sent
//! back: an answer is typed into whoever reads the terminal next.

use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::CursorShape;
use wharf_sequences::{Csi, TerminalQuestion, csi_question};

use crate::colour;
use crate::reading::Reading;
use crate::style::Style;

/// A cell's size in pixels, as the usual fonts have it.
const CELL_PIXELS: (usize, usize) = (10, 20);

impl Reading<'_> {
    /// Which terminal this is: one of the second generation, with colours.
    pub(crate) fn identify(&mut self) {
        self.reply("\x1b[?62;22c");
    }

    /// Answers a control sequence; whether it was a question.
    pub(crate) fn answer(&mut self, csi: &Csi<'_>) -> bool {
        if csi_question(csi) != Some(TerminalQuestion::Answered) {
            return false;
        }
        let first = csi.number(0);
        match (csi.marker, csi.intermediates, csi.action) {
            (0, b"", b'c') if first == 0 => self.identify(),
            (b'>', b"", b'c') if first == 0 => self.reply("\x1b[>1;277;0c"),
            (b'=', b"", b'c') if first == 0 => self.reply("\x1bP!|00000000\x1b\\"),
            (b'>', b"", b'q') if first == 0 => {
                self.reply(concat!("\x1bP>|wharf(", env!("CARGO_PKG_VERSION"), ")\x1b\\"));
            }
            (0, b"", b'n') => match first {
                5 => self.reply("\x1b[0n"),
                6 => self.position(""),
                _ => {}
            },
            (b'?', b"", b'n') => match first {
                6 => self.position("?"),
                // No printer, no locked keys, a plain keyboard, no locator.
                15 => self.reply("\x1b[?13n"),
                25 => self.reply("\x1b[?20n"),
                26 => self.reply("\x1b[?27;1;0;0n"),
                53 | 55 => self.reply("\x1b[?50n"),
                // The colours are dark.
                996 => self.reply("\x1b[?997;1n"),
                _ => {}
            },
            (0, b"$", b'p') => {
                let value = match first {
                    4 => setting(Some(self.terminal.mode(TermMode::INSERT))),
                    20 => setting(Some(self.terminal.mode(TermMode::LINE_FEED_NEW_LINE))),
                    // The keyboard is never locked, and what printers and blocks of a form had is not there.
                    1 | 2 | 5 | 7 | 10 | 11 | 13..=19 => ALWAYS_OFF,
                    // A terminal echoes nothing by itself.
                    12 => ALWAYS_ON,
                    _ => setting(None),
                };
                self.reply(format!("\x1b[{first};{value}$y"));
            }
            (b'?', b"$", b'p') => {
                let value = match first {
                    // The width is the viewer's, and scrolling is not smooth.
                    3 | 4 | 40 | 1001 => ALWAYS_OFF,
                    // Keys repeat.
                    8 => ALWAYS_ON,
                    _ => setting(self.private_mode(first)),
                };
                self.reply(format!("\x1b[?{first};{value}$y"));
            }
            (0, b"", b'x') if first <= 1 => self.reply(format!("\x1b[{};1;1;128;128;1;0x", first + 2)),
            (b'?', b"", b'u') => {
                let keyboard = &self.terminal.notes.keyboards[usize::from(self.terminal.alternate())];
                let flags = keyboard.flags();
                self.reply(format!("\x1b[?{flags}u"));
            }
            (b'?', b"", b'm') if first == 4 => {
                let level = self.terminal.notes.modify_other_keys;
                self.reply(format!("\x1b[>4;{level}m"));
            }
            // There are no graphics to be asked about.
            (b'?', b"", b'S') => self.reply(format!("\x1b[?{first};3;0S")),
            _ => {}
        }
        true
    }

    fn position(&mut self, marker: &str) {
        let point = self.terminal.cursor();
        let (top, left) = (self.terminal.bounds().0 as i32, self.terminal.side_bounds().0);
        let column = point.column.0.saturating_sub(left) + 1;
        self.reply(format!("\x1b[{marker}{};{column}R", point.line.0 - top + 1));
    }

    pub(crate) fn answer_window(&mut self, what: u16) {
        let (columns, rows) = (self.terminal.columns(), self.terminal.rows());
        let (width, height) = CELL_PIXELS;
        let reply = match what {
            // Neither minimised nor moved.
            11 => "\x1b[1t".to_owned(),
            13 => "\x1b[3;0;0t".to_owned(),
            14 => format!("\x1b[4;{};{}t", rows * height, columns * width),
            15 => format!("\x1b[5;{};{}t", rows * height, columns * width),
            16 => format!("\x1b[6;{height};{width}t"),
            18 => format!("\x1b[8;{rows};{columns}t"),
            19 => format!("\x1b[9;{rows};{columns}t"),
            // The program's own words: they are not for typing.
            20 => "\x1b]L\x1b\\".to_owned(),
            21 => "\x1b]l\x1b\\".to_owned(),
            _ => return,
        };
        self.reply(reply);
    }

    pub(crate) fn answer_colour(&mut self, prefix: &str, index: usize, bell: bool) {
        let colour = self.terminal.term.colors()[index].unwrap_or_else(|| colour::constant(index));
        let end = if bell { "\x07" } else { "\x1b\\" };
        self.reply(format!("\x1b]{prefix};{}{end}", colour::answer(colour)));
    }

    /// Device control strings: questions for settings and capabilities.
    pub(crate) fn device_string(&mut self, body: &[u8]) {
        if let Some(setting) = body.strip_prefix(b"$q") {
            match self.setting(setting) {
                Some(value) => self.reply(format!("\x1bP1$r{value}\x1b\\")),
                None => self.reply("\x1bP0$r\x1b\\"),
            }
        } else if let Some(names) = body.strip_prefix(b"+q") {
            for name in names.split(|byte| *byte == b';') {
                // In hexadecimal, as the protocol has it.
                match name.to_ascii_uppercase().as_slice() {
                    // TN, the terminal's name.
                    b"544E" => self.reply("\x1bP1+r544E=787465726D2D323536636F6C6F72\x1b\\"),
                    // Co and colors.
                    b"436F" => self.reply("\x1bP1+r436F=323536\x1b\\"),
                    b"636F6C6F7273" => self.reply("\x1bP1+r636F6C6F7273=323536\x1b\\"),
                    // RGB: eight bits for each channel.
                    b"524742" => self.reply("\x1bP1+r524742=38\x1b\\"),
                    _ => self.reply("\x1bP0+r\x1b\\"),
                }
            }
        }
    }

    fn setting(&self, name: &[u8]) -> Option<String> {
        Some(match name {
            b"m" => {
                let sequence = Style::of(&self.terminal.grid().cursor.template).sequence();
                sequence.trim_start_matches("\x1b[").to_owned()
            }
            b"r" => {
                let (top, bottom) = self.terminal.notes.margins;
                format!("{};{bottom}r", top + 1)
            }
            b"s" => {
                let (left, right) = self.terminal.sides();
                format!("{};{right}s", left + 1)
            }
            b" q" => format!("{} q", cursor_style(self.terminal.term.cursor_style())),
            b"\"p" => "62;1\"p".to_owned(),
            _ => return None,
        })
    }
}

/// The number that asks for a style of the cursor.
pub(crate) fn cursor_style(style: alacritty_terminal::vte::ansi::CursorStyle) -> u8 {
    let steady = match style.shape {
        CursorShape::Underline => 4,
        CursorShape::Beam => 6,
        _ => 2,
    };
    steady - u8::from(style.blinking)
}

/// A mode that is on for good, and one that is off for good.
const ALWAYS_ON: u8 = 3;
const ALWAYS_OFF: u8 = 4;

fn setting(on: Option<bool>) -> u8 {
    match on {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    }
}
