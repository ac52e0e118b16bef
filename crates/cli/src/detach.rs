//! The keys that leave a session: what they are called, and how they are found in what is typed.

use std::fmt;

use wharf_model::key_bytes;

/// The keys to press one after another in order to detach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKeys {
    shown: String,
    /// The ways in which terminals send each key.
    steps: Vec<Vec<Vec<u8>>>,
}

/// What is used when nothing else is said.
pub(crate) const DEFAULT: &str = "ctrl-\\";
/// What is used inside of another session, whose own keys are taken before they come this far.
pub(crate) const NESTED: &str = "ctrl-]";

impl DetachKeys {
    /// Reads `ctrl-\`, `ctrl-p,ctrl-q`, `C-a d`, or `none`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "none" {
            return Ok(Self { shown: text.to_owned(), steps: Vec::new() });
        }
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        let keys: Vec<String> = words.map(canonical).collect();
        if keys.is_empty() || keys.len() > 4 {
            return Err(format!("{text:?} names no detach keys: write ctrl-\\ or ctrl-p,ctrl-q or none"));
        }
        let steps = keys.iter().map(|key| spellings(key)).collect::<Result<_, _>>();
        Ok(Self {
            shown: text.to_owned(),
            steps: steps.map_err(|why| format!("detach keys {text:?}: {why}"))?,
        })
    }

    /// Whether no key leaves it.
    pub(crate) fn are_none(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether they are the same keys, however they are written.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.steps == other.steps
    }
}

/// `ctrl-x`, `Ctrl+X` and `C-x` as `C-x`; anything else as it is.
fn canonical(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    match lower
        .strip_prefix("ctrl-")
        .or_else(|| lower.strip_prefix("ctrl+"))
        .or_else(|| lower.strip_prefix("c-"))
    {
        Some(rest) if !rest.is_empty() => format!("C-{rest}"),
        _ => word.to_owned(),
    }
}

/// A key as a plain terminal sends it, as kitty's protocol does, and as xterm's `modifyOtherKeys` does.
fn spellings(key: &str) -> Result<Vec<Vec<u8>>, String> {
    let plain = key_bytes(key).map_err(|error| error.to_string())?;
    let mut all = vec![plain];
    let letter = key.strip_prefix("C-").filter(|rest| rest.len() == 1).and_then(|rest| rest.bytes().next());
    if let Some(letter) = letter {
        all.push(format!("\x1b[{letter};5u").into_bytes());
        all.push(format!("\x1b[{letter};5:1u").into_bytes());
        all.push(format!("\x1b[27;5;{letter}~").into_bytes());
    }
    Ok(all)
}

impl fmt::Display for DetachKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Looks for the detach keys in input that arrives in any pieces.
pub(crate) struct Watch {
    keys: DetachKeys,
    /// Bytes that may belong to the keys and are not passed on yet.
    held: Vec<u8>,
}

/// What the bytes that are held back are.
enum Look {
    /// All of the keys.
    Whole,
    /// Perhaps a part of them.
    Part,
    /// Something else.
    Other,
}

impl Watch {
    pub(crate) fn new(keys: DetachKeys) -> Self {
        Self { keys, held: Vec::new() }
    }

    /// Appends to `out` what is for the session. True when the keys were pressed: the rest is nobody's.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        if self.keys.steps.is_empty() {
            out.extend_from_slice(bytes);
            return false;
        }
        for &byte in bytes {
            self.held.push(byte);
            loop {
                match self.look() {
                    Look::Whole => return true,
                    Look::Part => break,
                    // The first byte goes on, and the others are looked at anew.
                    Look::Other => out.push(self.held.remove(0)),
                }
            }
        }
        // An escape alone is a key of its own: it must not wait for the next one.
        if self.held.first() == Some(&0x1b) && self.held.len() < 3 {
            out.append(&mut self.held);
        }
        false
    }

    fn look(&self) -> Look {
        let mut rest = self.held.as_slice();
        for ways in &self.keys.steps {
            if let Some(way) = ways.iter().find(|way| rest.starts_with(way)) {
                rest = &rest[way.len()..];
            } else if ways.iter().any(|way| way.starts_with(rest)) {
                return Look::Part;
            } else {
                return Look::Other;
            }
        }
        Look::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut watch = Watch::new(DetachKeys::parse(keys).unwrap());
        let mut out = Vec::new();
        let left = pieces.iter().any(|piece| watch.feed(piece, &mut out));
        (out, left)
    }

    #[test]
    fn keys_are_read() {
        for good in ["ctrl-\\", "Ctrl-P,ctrl-q", "C-a d", "none", "F12", "ctrl+]"] {
            assert!(DetachKeys::parse(good).is_ok(), "{good:?}");
        }
        for bad in ["", "ctrl-", "ctrl-é", "hello", "a,b,c,d,e", ","] {
            assert!(DetachKeys::parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn one_key_detaches_in_every_spelling() {
        for spelling in [&b"\x1c"[..], b"\x1b[92;5u", b"\x1b[27;5;92~"] {
            let input = [b"abc", spelling, b"rest"].concat();
            assert_eq!(typed(DEFAULT, &[&input]), (b"abc".to_vec(), true), "{spelling:?}");
        }
        assert_eq!(typed("none", &[b"\x1c"]), (b"\x1c".to_vec(), false));
    }

    #[test]
    fn two_keys_detach_only_together() {
        assert_eq!(typed("ctrl-p,ctrl-q", &[b"a\x10", b"\x11"]), (b"a".to_vec(), true));
        assert_eq!(typed("ctrl-p,ctrl-q", &[b"\x10x\x11"]), (b"\x10x\x11".to_vec(), false));
        assert_eq!(typed("ctrl-p,ctrl-q", &[b"\x10\x10\x11"]), (b"\x10".to_vec(), true));
    }

    #[test]
    fn other_input_passes_whole_and_at_once() {
        for input in [&b"\x1b"[..], b"\x1b[A", b"\x1b[92;6u", b"\x1b\x1b", "é漢".as_bytes()] {
            assert_eq!(typed(DEFAULT, &[input]), (input.to_vec(), false), "{input:?}");
        }
    }
}
