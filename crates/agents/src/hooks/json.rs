//! Edits of JSON text that leave every other byte as it was.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The members of an object, in order: names, and where their values stand in the text.
pub(super) fn members(text: &str, object: &Range<usize>) -> Option<Vec<(String, Range<usize>)>> {
    let members: Members<'_> = serde_json::from_str(&text[object.clone()]).ok()?;
    Some(members.0.into_iter().map(|(name, value)| (name, place(text, value))).collect())
}

/// The elements of an array, in order.
pub(super) fn elements(text: &str, array: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let elements: Vec<&RawValue> = serde_json::from_str(&text[array.clone()]).ok()?;
    Some(elements.into_iter().map(|value| place(text, value)).collect())
}

/// The value of a member.
pub(super) fn member(text: &str, object: &Range<usize>, name: &str) -> Option<Range<usize>> {
    members(text, object)?.into_iter().rfind(|(own, _)| own == name).map(|(_, value)| value)
}

/// The whole document's value, without the white space around it.
pub(super) fn root(text: &str) -> Range<usize> {
    let start = text.len() - text.trim_start().len();
    start..start + text.trim().len()
}

/// Adds a last item to an object or array: `item` is `"name": value` or a value.
pub(super) fn add(text: &mut String, whole: &Range<usize>, items: &[Range<usize>], item: &str, depth: usize) {
    let inside = &text[whole.start + 1..whole.end - 1];
    let (at, before, after) = match items.last() {
        // What stands before the first item is what stands before each.
        Some(last) => {
            let lead: String = inside.chars().take_while(|c| c.is_whitespace()).collect();
            (last.end, format!(",{lead}"), String::new())
        }
        None => (whole.end - 1, format!("\n{}", "  ".repeat(depth + 1)), format!("\n{}", "  ".repeat(depth))),
    };
    let start = if items.is_empty() { whole.start + 1 } else { at };
    text.replace_range(start..at, &format!("{before}{item}{after}"));
}

/// Takes an item out, with the comma that belongs to it.
pub(super) fn cut(text: &mut String, whole: &Range<usize>, items: &[Range<usize>], index: usize) {
    let range = match (index, items.len()) {
        (0, 1) => whole.start + 1..whole.end - 1,
        (0, _) => {
            // Up to where the next item begins, so that what stands before the first stays before it.
            let lead = text[whole.start + 1..].chars().take_while(|c| c.is_whitespace()).map(char::len_utf8);
            let start = whole.start + 1 + lead.sum::<usize>();
            let rest = &text[items[0].end..];
            let comma = rest.find(',').map_or(0, |comma| comma + 1);
            let blank = rest[comma..].chars().take_while(|c| c.is_whitespace()).map(char::len_utf8);
            start..items[0].end + comma + blank.sum::<usize>()
        }
        _ => items[index - 1].end..items[index].end,
    };
    text.replace_range(range, "");
}

/// A value as text, its further lines set in.
pub(super) fn pretty(value: &Value, depth: usize) -> String {
    let text = serde_json::to_string_pretty(value).expect("a value of our own has no keys but strings");
    text.replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

/// Where a value stands that was read from this text.
fn place(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + value.get().len()
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Members)
    }
}
