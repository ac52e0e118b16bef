//! Splits a byte stream into lines of JSON, and cuts giant strings so that memory stays bounded.

/// A string of JSON longer than this loses its end.
const MAX_STRING_LEN: usize = 1 << 20;
/// A line that is still longer than this, with its strings cut, loses its own.
const MAX_LINE_LEN: usize = 16 << 20;

/// One line, and how many bytes were left out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) cut: u64,
}

/// Lines of JSON out of bytes in any pieces. A giant string is cut where it stands, so that the line stays JSON and the
/// next line is found.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    cut: u64,
    string: Option<Inside>,
}

/// Where in a string the reader stands.
#[derive(Debug, Default)]
struct Inside {
    length: usize,
    cutting: bool,
    escape: Escape,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After a backslash.
    Begun,
    /// In `\uXXXX`: digits to come, and what they say so far.
    Digits(u8, u16),
    /// After the first half of a pair: its other half must stay with it.
    Half,
}

impl Lines {
    /// The lines that these bytes complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                lines.push(self.take());
            } else {
                self.push(byte);
            }
        }
        lines
    }

    /// How many bytes of a line without an end are kept.
    pub(crate) fn pending(&self) -> usize {
        self.bytes.len()
    }

    /// A last line without an end.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        (!self.bytes.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Line {
        self.string = None;
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        self.bytes = Vec::new();
        Line { text, cut: std::mem::take(&mut self.cut) }
    }

    fn push(&mut self, byte: u8) {
        let keep = match &mut self.string {
            None => {
                if byte == b'"' {
                    self.string = Some(Inside::default());
                }
                true
            }
            Some(inside) => match inside.step(byte) {
                Step::Keep => true,
                Step::Cut => false,
                Step::End => {
                    self.string = None;
                    true
                }
            },
        };
        if keep && self.bytes.len() < MAX_LINE_LEN {
            self.bytes.push(byte);
        } else {
            self.cut += 1;
        }
    }
}

enum Step {
    Keep,
    Cut,
    End,
}

impl Inside {
    fn step(&mut self, byte: u8) -> Step {
        let whole = matches!(self.escape, Escape::None) && !(0x80..0xc0).contains(&byte);
        if byte == b'"' && matches!(self.escape, Escape::None | Escape::Half) {
            return Step::End;
        }
        self.length += 1;
        if whole && self.length > MAX_STRING_LEN {
            self.cutting = true;
        }
        self.escape = match (self.escape, byte) {
            (Escape::None | Escape::Half, b'\\') => Escape::Begun,
            (Escape::Begun, b'u') => Escape::Digits(4, 0),
            (Escape::Digits(left, value), digit) => {
                let value = value << 4 | (digit as char).to_digit(16).unwrap_or(0) as u16;
                match left {
                    1 if (0xd800..0xdc00).contains(&value) => Escape::Half,
                    1 => Escape::None,
                    _ => Escape::Digits(left - 1, value),
                }
            }
            _ => Escape::None,
        };
        if self.cutting { Step::Cut } else { Step::Keep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_giant_string_is_cut_and_the_next_line_found() {
        let mut lines = Lines::default();
        let mut fed = b"{\"a\":\"".to_vec();
        fed.extend(vec![b'x'; 3 << 20]);
        fed.extend(b"\\\"\",\"b\":1}\n{\"c\":2}\n");
        let mut got = Vec::new();
        for piece in fed.chunks(1000) {
            got.extend(lines.feed(piece));
        }
        assert_eq!(got.len(), 2);
        let value: serde_json::Value = serde_json::from_str(&got[0].text).expect("still JSON");
        assert_eq!(value["b"], 1);
        assert_eq!(value["a"].as_str().map(str::len), Some(MAX_STRING_LEN));
        assert_eq!(got[0].cut, (2 << 20) + 2);
        assert_eq!(got[1], Line { text: "{\"c\":2}".into(), cut: 0 });
    }

    #[test]
    fn a_cut_never_splits_an_escape() {
        for unit in ["\\ud83d\\ude00", "\\n", "\\\\", "é", "\\\"", "😀"] {
            let text =
                format!("{{\"a\":\"{}\",\"b\":1}}\n", unit.repeat((MAX_STRING_LEN / unit.len()) + 100));
            let got = Lines::default().feed(text.as_bytes());
            let value: serde_json::Value = serde_json::from_str(&got[0].text).expect(unit);
            assert_eq!(value["b"], 1, "{unit}");
            assert!(got[0].cut > 0, "{unit}");
            assert!(!got[0].text.contains('\u{fffd}'), "{unit}");
        }
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut lines = Lines::default();
        for _ in 0..40 {
            assert_eq!(lines.feed(&vec![b'['; 1 << 20]), []);
        }
        assert!(lines.bytes.len() <= MAX_LINE_LEN);
        let got = lines.feed(b"\n{}\n");
        assert_eq!(got.len(), 2);
        assert_eq!(got[0].cut, (40 << 20) - MAX_LINE_LEN as u64);
        assert_eq!(got[1].text, "{}");
    }
}
