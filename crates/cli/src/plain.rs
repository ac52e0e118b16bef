//! Output as text: no sequences, no control characters, nothing that turns the direction of writing, lines ended by line feeds.

use wharf_model::is_control;

use crate::filter::{Filter, Policy};

/// A filter that leaves text, tabs and line feeds.
pub(crate) struct Plain(Filter<TextOnly>);

impl Plain {
    pub(crate) fn new() -> Self {
        Self(Filter::new(TextOnly::default()))
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.0.feed(bytes, out);
    }
}

#[derive(Default)]
struct TextOnly {
    /// Carriage returns were seen, and what follows decides what they were.
    returned: bool,
    /// The line has text already.
    has_text: bool,
    /// The beginning of a character that has more bytes.
    begun: Vec<u8>,
}

impl TextOnly {
    /// Puts text that is whole.
    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        // A return alone starts the line anew: what was there and what comes are two lines of text. Where nothing was
        // there, as before the output of each command of a shell, it is nothing.
        if std::mem::take(&mut self.returned) && self.has_text {
            out.push(b'\n');
        }
        self.has_text = true;
        out.extend_from_slice(bytes);
    }

    /// Puts what was begun and does not become a character: it is no business of ours.
    fn put_begun(&mut self, out: &mut Vec<u8>) {
        let begun = std::mem::take(&mut self.begun);
        if !begun.is_empty() {
            self.put(&begun, out);
        }
    }
}

/// Whether a character is left out. What joins letters, or keeps them apart, belongs to words and to faces.
fn is_left_out(c: char) -> bool {
    is_control(c) && !matches!(c, '\u{200c}' | '\u{200d}')
}

impl Policy for TextOnly {
    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.put_begun(out);
        match byte {
            b'\n' => {
                (self.returned, self.has_text) = (false, false);
                out.push(b'\n');
            }
            b'\t' => self.put(b"\t", out),
            b'\r' => self.returned = true,
            _ => {}
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte.is_ascii() {
            self.put_begun(out);
            return self.put(&[byte], out);
        }
        if byte >= 0xc0 {
            // Another one begins.
            self.put_begun(out);
        }
        self.begun.push(byte);
        match std::str::from_utf8(&self.begun) {
            Ok(whole) if whole.contains(is_left_out) => self.begun.clear(),
            Err(error) if error.error_len().is_none() => {}
            Ok(_) | Err(_) => self.put_begun(out),
        }
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

    #[test]
    fn nothing_turns_the_direction_of_writing() {
        let text = "safe\u{202e}exe.\u{202c} a\u{200f}b\u{61c}c\u{2066}d\u{2028}e\u{feff}f é漢🦀 \u{645}\u{200c}\u{6cc}";
        let expected = "safeexe. abcdef é漢🦀 \u{645}\u{200c}\u{6cc}";
        // However it is cut.
        for size in 1..8 {
            let (mut plain, mut out) = (Plain::new(), Vec::new());
            text.as_bytes().chunks(size).for_each(|piece| plain.feed(piece, &mut out));
            assert_eq!(String::from_utf8_lossy(&out), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_text_stays_as_it_came() {
        let (mut plain, mut out) = (Plain::new(), Vec::new());
        plain.feed(b"a\xffb\xe2\x80c\xe2\x80\nd\xf0\x9f\r\xe2\x82\xac", &mut out);
        assert_eq!(out, b"a\xffb\xe2\x80c\xe2\x80\nd\xf0\x9f\n\xe2\x82\xac");
    }

    #[test]
    fn a_return_on_an_empty_line_makes_no_line() {
        let (mut plain, mut out) = (Plain::new(), Vec::new());
        plain.feed(b"$ echo hello\r\n\x1b[?2004l\rhello\r\n\r\r$ ", &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "$ echo hello\nhello\n$ ");
    }
}
