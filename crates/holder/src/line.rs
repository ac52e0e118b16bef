//! The line that is being typed at a terminal: whether something stands on it that nobody has submitted.

/// Follows what is typed. It sees keys and no screen, so it is careful: what may have put something onto the line counts
/// until the line ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line {
    /// Characters on it.
    count: u32,
    /// Those of them that were typed while the terminal was in line mode: it keeps them itself until the line ends.
    kept: u32,
    /// A key may have put something there that was not typed: a completion, an entry of the history.
    filled: bool,
    /// What was typed before we began to look is not known.
    unknown: bool,
    /// Between the marks of a paste nothing submits.
    pasting: bool,
    place: Place,
}

/// Where in a sequence the next byte stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Ground,
    Escape,
    /// In a control sequence, with its first number.
    Csi(u16, bool),
    /// After `ESC O`.
    Single,
    /// In a string, which a terminal's answer may be.
    Text,
    /// After an escape in it.
    TextEscape,
}

impl Line {
    /// One at which somebody may have typed already.
    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// Whether something was typed that no key has submitted or taken back; `None` where that is not known.
    pub fn is_open(&self) -> Option<bool> {
        let open = self.count > 0 || self.filled;
        (open || !self.unknown).then_some(open)
    }

    /// Whether something of an open line was typed while the terminal was in line mode. No program has taken that as a key:
    /// whoever reads the next line reads it.
    pub fn is_kept(&self) -> bool {
        self.kept > 0 && self.is_open() == Some(true)
    }

    /// What others are told of it, in a byte that is zero only where it is not open.
    pub fn mark(&self) -> u8 {
        u8::from(self.is_open() == Some(true)) | u8::from(self.is_kept()) << 1
    }

    /// Takes what somebody else says of it, by its [`mark`](Self::mark).
    pub fn told(&mut self, mark: u8) {
        let kept = mark & 2 != 0 || (mark != 0 && self.is_kept());
        *self = Self { filled: mark != 0, kept: kept.into(), ..Self::default() };
    }

    /// Takes what was typed, and whether the terminal was in line mode then.
    pub fn typed(&mut self, bytes: &[u8], canonical: bool) {
        for byte in bytes {
            self.key(*byte, canonical);
        }
        // A sequence comes in one piece; an escape at the end is the key itself.
        if self.place == Place::Escape {
            self.place = Place::Ground;
        }
    }

    fn key(&mut self, byte: u8, canonical: bool) {
        self.place = match (self.place, byte) {
            (Place::Ground | Place::Escape, 0x1b) => Place::Escape,
            (Place::Ground, _) => {
                self.plain(byte, canonical);
                Place::Ground
            }
            (Place::Escape, b'[') => Place::Csi(0, true),
            (Place::Escape, b'O') => Place::Single,
            (Place::Escape, b']' | b'P' | b'_' | b'^') => Place::Text,
            (Place::Escape, _) => {
                self.filled = true;
                Place::Ground
            }
            (Place::Csi(number, true), b'0'..=b'9') => {
                Place::Csi(number.saturating_mul(10).saturating_add(u16::from(byte - b'0')), true)
            }
            (Place::Csi(number, _), 0x20..=0x3f) => Place::Csi(number, false),
            (Place::Csi(number, _), _) => {
                match (number, byte) {
                    (200, b'~') => self.pasting = true,
                    (201, b'~') => self.pasting = false,
                    // Enter, as some terminals say it.
                    (13, b'u') => self.ended(),
                    // Up and down bring lines of the history, and any other key may be told so.
                    (_, b'A' | b'B' | b'u') => self.filled = true,
                    _ => {}
                }
                Place::Ground
            }
            (Place::Single, _) => {
                self.filled |= matches!(byte, b'A' | b'B');
                Place::Ground
            }
            (Place::Text, 0x07) | (Place::TextEscape, b'\\') => Place::Ground,
            (Place::Text, 0x1b) => Place::TextEscape,
            (Place::Text | Place::TextEscape, _) => Place::Text,
        };
    }

    fn plain(&mut self, byte: u8, canonical: bool) {
        match byte {
            // In line mode C-d hands over what stands there.
            0x04 if canonical => self.ended(),
            // C-c takes it back, pasted or not; C-u deletes it.
            0x03 => self.ended(),
            b'\r' | b'\n' | 0x15 if !self.pasting => self.ended(),
            0x08 | 0x7f => {
                self.count = self.count.saturating_sub(1);
                self.kept = self.kept.min(self.count);
            }
            // Tab completes; C-n, C-p, C-r and C-y bring what was there before.
            b'\t' | 0x0e | 0x10 | 0x12 | 0x19 => self.filled = true,
            0x20..=0x7e | 0xc0.. => self.add(canonical),
            _ if self.pasting => self.add(canonical),
            _ => {}
        }
    }

    fn add(&mut self, canonical: bool) {
        self.count = self.count.saturating_add(1);
        self.kept = self.kept.saturating_add(canonical.into());
    }

    fn ended(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(keys: &str) -> Option<bool> {
        let mut line = Line::default();
        line.typed(keys.as_bytes(), false);
        let mut by_bytes = Line::default();
        for byte in keys.as_bytes() {
            by_bytes.key(*byte, false);
        }
        assert_eq!(line.is_open(), by_bytes.is_open(), "{keys:?}");
        line.is_open()
    }

    #[test]
    fn what_was_typed_stands_until_the_line_ends() {
        for open in
            ["l", "ls -l", "ü", "\t", "\u{1b}[A", "\u{1b}OB", "ab\u{7f}", "a\t\u{7f}", "a\rb", "\u{1b}."]
        {
            assert_eq!(after(open), Some(true), "{open:?}");
        }
        for ended in
            ["", "ls\r", "ls\n", "ls\u{3}", "ls\u{15}", "ü\u{7f}", "\u{7f}", "\u{1b}[13u", "\u{1}\u{5}"]
        {
            assert_eq!(after(ended), Some(false), "{ended:?}");
        }
    }

    #[test]
    fn a_paste_submits_nothing_by_itself() {
        assert_eq!(after("\u{1b}[200~one\rtwo\r\u{1b}[201~"), Some(true));
        assert_eq!(after("\u{1b}[200~one\u{1b}[201~\r"), Some(false));
        assert_eq!(after("\u{1b}[200~one\u{3}"), Some(false));
    }

    #[test]
    fn an_answer_of_the_terminal_is_nothing_typed() {
        for answer in [
            "\u{1b}[1;7R",
            "\u{1b}[?62;22c",
            "\u{1b}]11;rgb:00/00/00\u{7}",
            "\u{1b}P1$r0m\u{1b}\\",
            "\u{1b}[I",
        ] {
            assert_eq!(after(answer), Some(false), "{answer:?}");
        }
    }

    #[test]
    fn what_was_there_before_is_not_known_until_a_line_ends() {
        let mut line = Line::unknown();
        assert_eq!(line.is_open(), None);
        line.typed(b"x", false);
        assert_eq!(line.is_open(), Some(true));
        line.typed(b"\r", false);
        assert_eq!(line.is_open(), Some(false));
        line.told(1);
        assert_eq!((line.is_open(), line.is_kept()), (Some(true), false));
        line.told(3);
        assert_eq!((line.is_open(), line.is_kept()), (Some(true), true));
    }

    #[test]
    fn what_is_typed_in_line_mode_is_kept_until_the_line_ends() {
        let typed = |pieces: &[(&str, bool)]| {
            let mut line = Line::default();
            for (keys, canonical) in pieces {
                line.typed(keys.as_bytes(), *canonical);
            }
            let mut told = Line::default();
            told.told(line.mark());
            assert_eq!(told.is_kept(), line.is_kept(), "{pieces:?}");
            assert_eq!(told.is_open() == Some(true), line.is_open() == Some(true), "{pieces:?}");
            line.is_kept()
        };
        assert!(typed(&[("half", true)]));
        assert!(typed(&[("half", true), ("more", false)]));
        for ended in ["half\r", "half\u{15}", "half\u{4}", "x\u{7f}", ""] {
            assert!(!typed(&[(ended, true)]), "{ended:?}");
        }
        assert!(!typed(&[("q", false)]), "a program reads keys");
        assert!(!typed(&[("half", true), ("\r", false), ("q", false)]));
    }

    #[test]
    fn an_escape_alone_is_a_key_of_its_own() {
        let mut line = Line::default();
        for piece in ["x", "\u{1b}", "\r"] {
            line.typed(piece.as_bytes(), false);
        }
        assert_eq!(line.is_open(), Some(false));
    }
}
