//! Decodes keys, pastes and terminal replies from bytes, however they were cut.

/// One thing that the user of a terminal did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Input {
    /// Typed bytes, in one go.
    Text(Vec<u8>),
    /// A bracketed paste, whole.
    Paste(Vec<u8>),
    /// CR, or `CSI 13 u`.
    Enter,
    /// LF, or Escape and CR: a line break in the text.
    Newline,
    /// Escape alone.
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
    /// Backspace.
    Back,
    /// The cursor key.
    Up,
    /// The cursor key.
    Down,
    /// A terminal's answer to a question: the whole sequence.
    Reply(Vec<u8>),
}

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Turns bytes into input, however they were cut.
#[derive(Default)]
pub(super) struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    /// Takes bytes and gives all input that is complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.held.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some((input, used)) = next(&self.held) {
            self.held.drain(..used);
            if let Some(input) = input {
                push(&mut found, input);
            }
        }
        found
    }

    /// Whether an Escape stands alone: with nothing after it for a moment it is the key.
    pub(super) fn waits_on_escape(&self) -> bool {
        self.held == b"\x1b"
    }

    /// The moment has passed.
    pub(super) fn escape(&mut self) -> Input {
        self.held.clear();
        Input::Escape
    }
}

/// Typed bytes that arrive together are one piece of text.
fn push(found: &mut Vec<Input>, input: Input) {
    match (found.last_mut(), input) {
        (Some(Input::Text(text)), Input::Text(more)) => text.extend(more),
        (_, input) => found.push(input),
    }
}

/// The first input and its length; nothing while it is not complete. A sequence that means nothing here has a length alone.
fn next(bytes: &[u8]) -> Option<(Option<Input>, usize)> {
    let simple = |input| Some((Some(input), 1));
    match *bytes.first()? {
        b'\r' => simple(Input::Enter),
        b'\n' => simple(Input::Newline),
        3 => simple(Input::Interrupt),
        4 => simple(Input::End),
        8 | 127 => simple(Input::Back),
        0x1b => sequence(bytes),
        _ => {
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 3 | 4 | 8 | 127 | 0x1b));
            let length = end.unwrap_or(bytes.len());
            Some((Some(Input::Text(bytes[..length].to_vec())), length))
        }
    }
}

fn sequence(bytes: &[u8]) -> Option<(Option<Input>, usize)> {
    match *bytes.get(1)? {
        b'[' => {}
        b'\r' => return Some((Some(Input::Newline), 2)),
        0x1b => return Some((Some(Input::Escape), 1)),
        b']' | b'P' => {
            let (at, length) = terminator(bytes)?;
            return Some((Some(Input::Reply(bytes[..at].to_vec())), at + length));
        }
        _ => return Some((None, 2)),
    }
    if bytes.starts_with(PASTE_START) {
        let text = &bytes[PASTE_START.len()..];
        let end = text.windows(PASTE_END.len()).position(|window| window == PASTE_END)?;
        let used = PASTE_START.len() + end + PASTE_END.len();
        return Some((Some(Input::Paste(breaks(&text[..end]))), used));
    }
    let last = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte))? + 2;
    let input = match &bytes[2..=last] {
        b"A" => Some(Input::Up),
        b"B" => Some(Input::Down),
        b"13u" => Some(Input::Enter),
        b"27u" => Some(Input::Escape),
        _ if matches!(bytes[last], b'R' | b'c' | b'n') => Some(Input::Reply(bytes[..=last].to_vec())),
        _ => None,
    };
    Some((input, last + 1))
}

/// Where an OSC or DCS ends, and how long its end is.
fn terminator(bytes: &[u8]) -> Option<(usize, usize)> {
    let at = bytes.iter().position(|byte| *byte == 7).map(|at| (at, 1));
    let string = bytes.windows(2).position(|window| window == b"\x1b\\").map(|at| (at, 2));
    [at, string].into_iter().flatten().min()
}

/// A terminal pastes a line break as CR; the text has LF.
fn breaks(text: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\r' if text.get(at + 1) == Some(&b'\n') => {}
            b'\r' => clean.push(b'\n'),
            other => clean.push(*other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_input() {
        let bytes =
            b"ab\x1b[200~one\rtwo\x1b[31m\x1b[201~\r\x1b[13u\x1b[A\n\x1b]11;rgb:0/0/0\x07\x1b[2;3R\x1b\r\x7f";
        let whole = Decoder::default().feed(bytes);
        let expected = [
            Input::Text(b"ab".to_vec()),
            Input::Paste(b"one\ntwo\x1b[31m".to_vec()),
            Input::Enter,
            Input::Enter,
            Input::Up,
            Input::Newline,
            Input::Reply(b"\x1b]11;rgb:0/0/0".to_vec()),
            Input::Reply(b"\x1b[2;3R".to_vec()),
            Input::Newline,
            Input::Back,
        ];
        assert_eq!(whole, expected);
        for cut in 3..bytes.len() {
            let mut decoder = Decoder::default();
            let mut found = decoder.feed(&bytes[..cut]);
            found.extend(decoder.feed(&bytes[cut..]));
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn an_escape_alone_waits() {
        let mut decoder = Decoder::default();
        assert!(decoder.feed(b"\x1b").is_empty());
        assert!(decoder.waits_on_escape());
        assert_eq!(decoder.escape(), Input::Escape);
        assert!(!decoder.waits_on_escape());
        assert_eq!(decoder.feed(b"\x1b\x1b[A"), [Input::Escape, Input::Up]);
    }
}
