//! Output as text: no sequences, no control characters, lines ended by line feeds.

use crate::scanner::{Policy, Scanner};

/// A filter that leaves text, tabs and line feeds.
pub(crate) struct Plain(Scanner<TextOnly>);

impl Plain {
    pub(crate) fn new() -> Self {
        Self(Scanner::new(TextOnly::default()))
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.0.feed(bytes, out);
    }
}

#[derive(Default)]
struct TextOnly {
    /// Carriage returns were seen, and what follows decides what they were.
    returned: bool,
}

impl Policy for TextOnly {
    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'\n' => {
                self.returned = false;
                out.push(b'\n');
            }
            b'\t' => self.text(b'\t', out),
            b'\r' => self.returned = true,
            _ => {}
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        // A return alone starts the line anew: what was there and what comes are two lines of text.
        if std::mem::take(&mut self.returned) {
            out.push(b'\n');
        }
        out.push(byte);
    }

    fn escape(&mut self, _: &[u8]) -> bool {
        false
    }
    fn csi(&mut self, _: &[u8]) -> bool {
        false
    }
    fn osc(&mut self, _: &[u8]) -> bool {
        false
    }
    fn dcs(&mut self, _: &[u8]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_left() {
        let mut plain = Plain::new();
        let mut out = Vec::new();
        for piece in [
            &b"\x1b[1mbold\x1b[0m\r"[..],
            b"\n\x1b]0;title\x07a\tb\x08\r\r\n10%\r",
            b"20%\r\n\x1bPq~~\x1b\\end\xc2",
            b"\x9b31mred",
        ] {
            plain.feed(piece, &mut out);
        }
        assert_eq!(String::from_utf8_lossy(&out), "bold\na\tb\n10%\n20%\nendred");
    }
}
