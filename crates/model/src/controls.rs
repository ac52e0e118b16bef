//! Characters that a terminal acts on, or that turn the direction of writing: no face shows them as they came.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What stands in the place of a character that is not shown.
const REPLACED: char = '\u{fffd}';

/// Whether a terminal, or a reader's eye, is led astray by a character: C0 (with line feeds and tabs), DEL, C1, marks and
/// overrides of direction, line separators, and what takes no room.
pub fn is_control(c: char) -> bool {
    match c {
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => true,
        c => c.is_control(),
    }
}

/// A text of one line, with a mark in the place of every such character.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_control(c) { REPLACED } else { c }).collect()
}

/// A text of several lines: line feeds and tabs stay.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_control(c);
    if text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) || text.chars().all(stays) {
        return text.into();
    }
    text.chars().map(|c| if stays(c) { c } else { REPLACED }).collect()
}

/// JSON that says the same and holds no such character raw. They can stand in its strings alone, where `\uXXXX` is the
/// character itself: nothing is lost. The line feeds and tabs of JSON that is set out in lines stay.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let raw = |c: char| !matches!(c, '\n' | '\t' | '\r') && is_control(c);
    if json.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b'\r' | b' '..=b'~')) || !json.contains(raw) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if raw(c) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "a\x1b]0;x\x07b\u{9b}2Jc\u{7f}d\u{202e}e\u{2066}f\u{200f}g\u{61c}h";

    #[test]
    fn nothing_moves_the_cursor() {
        for cleaned in [clean(ALL), clean_lines(ALL).into_owned()] {
            assert!(!cleaned.contains(is_control), "{cleaned:?}");
            assert!(cleaned.starts_with("a\u{fffd}]0;x\u{fffd}b"), "{cleaned:?}");
        }
        assert_eq!(clean("a\tb\nc"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(clean_lines("a\tb\nc\rd é 漢"), "a\tb\nc\u{fffd}d é 漢");
        assert!(matches!(clean_lines("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn escaped_json_says_the_same() {
        let value = serde_json::json!({ ALL: [ALL, "plain", "漢"], "n": 1 });
        for json in [serde_json::to_string(&value), serde_json::to_string_pretty(&value)] {
            let json = json.expect("JSON");
            let escaped = escape_json(&json);
            assert!(!escaped.replace('\n', "").contains(is_control), "{escaped:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).expect("still JSON"), value);
        }
    }
}
