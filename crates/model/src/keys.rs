//! Translates names of keys, such as `C-c`, into the bytes that a terminal sends.

use std::fmt;

/// A word that names no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError(String);

/// The bytes that a terminal sends for a key: `Enter`, `C-c`, `M-x`, `Up`, `F5`, or one character.
pub fn key_bytes(key: &str) -> Result<Vec<u8>, KeyError> {
    let unknown = || KeyError(key.to_owned());
    if let Some(rest) = key.strip_prefix("M-").filter(|rest| !rest.is_empty()) {
        let mut bytes = vec![0x1b];
        bytes.extend(key_bytes(rest).map_err(|_| unknown())?);
        return Ok(bytes);
    }
    if let Some(rest) = key.strip_prefix("C-").filter(|rest| !rest.is_empty()) {
        return control(rest).map(|byte| vec![byte]).ok_or_else(unknown);
    }
    if let Some(bytes) = named(key) {
        return Ok(bytes.to_vec());
    }
    let mut chars = key.chars();
    match (chars.next(), chars.next()) {
        (Some(_), None) => Ok(key.as_bytes().to_vec()),
        _ => Err(unknown()),
    }
}

fn control(rest: &str) -> Option<u8> {
    match rest.as_bytes() {
        [byte @ (b'@'..=b'_' | b'a'..=b'z')] => Some(byte & 0x1f),
        [b'?'] => Some(0x7f),
        _ if rest.eq_ignore_ascii_case("space") => Some(0),
        _ => None,
    }
}

fn named(key: &str) -> Option<&'static [u8]> {
    Some(match key.to_ascii_lowercase().as_str() {
        "enter" | "return" => b"\r",
        "escape" | "esc" => b"\x1b",
        "tab" => b"\t",
        "btab" | "s-tab" => b"\x1b[Z",
        "space" => b" ",
        "bspace" | "backspace" => b"\x7f",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "ic" | "insert" => b"\x1b[2~",
        "dc" | "delete" => b"\x1b[3~",
        "ppage" | "pageup" | "pgup" => b"\x1b[5~",
        "npage" | "pagedown" | "pgdn" => b"\x1b[6~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "f3" => b"\x1bOR",
        "f4" => b"\x1bOS",
        "f5" => b"\x1b[15~",
        "f6" => b"\x1b[17~",
        "f7" => b"\x1b[18~",
        "f8" => b"\x1b[19~",
        "f9" => b"\x1b[20~",
        "f10" => b"\x1b[21~",
        "f11" => b"\x1b[23~",
        "f12" => b"\x1b[24~",
        _ => return None,
    })
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} names no key", self.0)
    }
}

impl std::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_what_a_terminal_sends() {
        let cases: &[(&str, &[u8])] = &[
            ("C-c", b"\x03"),
            ("C-C", b"\x03"),
            ("C-Space", b"\0"),
            ("C-[", b"\x1b"),
            ("Enter", b"\r"),
            ("Escape", b"\x1b"),
            ("M-x", b"\x1bx"),
            ("M-Enter", b"\x1b\r"),
            ("x", b"x"),
            ("é", "é".as_bytes()),
            ("Up", b"\x1b[A"),
            ("-", b"-"),
        ];
        for (key, bytes) in cases {
            assert_eq!(key_bytes(key).unwrap(), *bytes, "{key}");
        }
        for bad in ["", "C-", "M-", "C-é", "Enterr", "hello", "M-hello"] {
            assert!(key_bytes(bad).is_err(), "{bad:?} was taken");
        }
    }
}
