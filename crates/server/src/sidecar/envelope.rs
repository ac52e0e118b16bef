//! Parses one line of the event socket, within limits.

use serde::Deserialize;
use serde_json::Value;
use wharf_model::{Code, Failure};

/// The version that is understood.
const VERSION: u32 = 1;
/// The most values of one line. A value takes many times the memory of the two bytes that it may be.
const MAX_VALUES: usize = 100_000;
/// The longest kind of an event.
const MAX_KIND_LEN: usize = 128;

/// One line.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Envelope {
    #[serde(default = "version")]
    v: u32,
    kind: Option<String>,
    #[serde(default)]
    pub(super) data: Value,
    /// The sender's own number.
    pub(super) seq: Option<u64>,
    /// Whether it wants an answer.
    #[serde(default)]
    pub(super) ack: bool,
    session: Option<String>,
    token: Option<String>,
    /// Whether all that follows is told for this session, whatever it says: a room speaks, and others speak in it.
    #[serde(default)]
    pub(super) only: bool,
}

/// How many values a line has, at most: each begins a list, or comes after a comma. Those in texts do not count.
fn values(line: &[u8]) -> usize {
    let (mut count, mut text, mut escaped) = (1, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b',' | b'[' | b'{' if !text => count += 1,
            _ => {}
        }
    }
    count
}

fn version() -> u32 {
    VERSION
}

impl Envelope {
    pub(super) fn read(line: &[u8]) -> Result<Self, Failure> {
        if values(line) > MAX_VALUES {
            return Err(Failure::new(Code::TooLong, format!("the line has more than {MAX_VALUES} values")));
        }
        // The reader itself refuses what is nested more than 128 deep.
        serde_json::from_slice(line)
            .map_err(|error| Failure::new(Code::Invalid, format!("the line is no event: {error}")))
    }

    /// The session that the sender says it belongs to, with its mark.
    pub(super) fn credentials(&self) -> Option<(&str, &str)> {
        Some((self.session.as_deref()?, self.token.as_deref()?))
    }

    /// What it tells; none where it only says who speaks.
    pub(super) fn kind(&self) -> Result<Option<&str>, Failure> {
        if self.v != VERSION {
            return Err(Failure::new(Code::Unsupported, format!("version {} is not understood", self.v))
                .hint("write \"v\":1"));
        }
        match self.kind.as_deref() {
            None if self.credentials().is_some() => Ok(None),
            None | Some("") => Err(Failure::new(Code::Invalid, "the event has no kind")),
            Some(kind) if kind.len() > MAX_KIND_LEN => {
                Err(Failure::new(Code::Invalid, format!("the kind is longer than {MAX_KIND_LEN} bytes")))
            }
            kind => Ok(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Envelope {
        Envelope::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_line_tells_something_or_says_who_speaks() {
        let event = read(r#"{"v":1,"kind":"x.y","data":{"a":1},"seq":7,"new":true}"#);
        assert_eq!((event.kind(), event.seq, event.ack), (Ok(Some("x.y")), Some(7), false));
        assert_eq!(event.data["a"], 1);
        let hello = read(r#"{"v":1,"session":"s","token":"t","ack":true}"#);
        assert_eq!((hello.kind(), hello.credentials(), hello.ack), (Ok(None), Some(("s", "t")), true));
        let both = read(r#"{"kind":"k","session":"s","token":"t"}"#);
        assert_eq!(both.kind(), Ok(Some("k")));
    }

    #[test]
    fn a_line_of_nothing_but_values_is_refused_before_it_takes_memory() {
        let lists = format!(r#"{{"kind":"k","data":[{}[]]}}"#, "[],".repeat(MAX_VALUES));
        assert_eq!(Envelope::read(lists.as_bytes()).unwrap_err().code, Code::TooLong);
        let text = format!(r#"{{"kind":"k","data":"\"{}\\"}}"#, "[],".repeat(MAX_VALUES));
        assert!(Envelope::read(text.as_bytes()).is_ok());
        let deep = format!(r#"{{"kind":"k","data":{}{}}}"#, "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(Envelope::read(deep.as_bytes()).unwrap_err().code, Code::Invalid);
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for text in ["", "[]", "1", "{\"kind\":1}", "{\"kind\":\"a\"", "\u{0}"] {
            assert!(Envelope::read(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(read(r#"{"v":2,"kind":"k"}"#).kind().unwrap_err().code, Code::Unsupported);
        assert_eq!(read("{}").kind().unwrap_err().code, Code::Invalid);
        let long = format!(r#"{{"kind":"{}"}}"#, "k".repeat(200));
        assert_eq!(read(&long).kind().unwrap_err().code, Code::Invalid);
    }
}
