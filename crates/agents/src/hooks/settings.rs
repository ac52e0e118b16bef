//! Adds and removes Wharf's hooks in a JSON settings file, and leaves every other byte alone.

use std::ops::Range;

use serde_json::Value;

use super::entries::is_ours;
use super::json;

/// Where the hooks stand in a settings file.
const HOOKS: &str = "hooks";

/// The text with the wanted entries, and no others of ours. `Err` says what is wrong with the file.
pub(super) fn with(text: &str, wanted: &[(String, Value)]) -> Result<String, String> {
    let blank = text.trim().is_empty();
    let mut text = if blank { "{}\n".to_owned() } else { text.to_owned() };
    check(&text)?;
    if ours(&text) == wanted {
        return Ok(text);
    }
    text = without(&text)?;
    for (event, entry) in wanted {
        let root = json::root(&text);
        let Some(hooks) = json::member(&text, &root, HOOKS) else {
            let item = format!("\"{HOOKS}\": {{\n    {}\n  }}", item(event, entry, 2));
            let items = values(json::members(&text, &root));
            json::add(&mut text, &root, &items, &item, 0);
            continue;
        };
        let Some(list) = json::member(&text, &hooks, event) else {
            let item = item(event, entry, 2);
            let items = values(json::members(&text, &hooks));
            json::add(&mut text, &hooks, &items, &item, 1);
            continue;
        };
        let items = json::elements(&text, &list).ok_or_else(|| format!("{HOOKS}.{event} is not a list"))?;
        json::add(&mut text, &list, &items, &json::pretty(entry, 3), 2);
    }
    Ok(text)
}

/// The text without any entry of ours.
pub(super) fn without(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    check(text)?;
    let mut text = text.to_owned();
    while cut_one(&mut text) {}
    Ok(text)
}

/// The entries of ours, by event, in the file's order.
pub(super) fn ours(text: &str) -> Vec<(String, Value)> {
    let Ok(Value::Object(root)) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let mut found = Vec::new();
    // The order is the file's own, which a map of values has lost.
    let place = json::root(text);
    let events =
        json::member(text, &place, HOOKS).and_then(|hooks| json::members(text, &hooks)).unwrap_or_default();
    for (event, _) in events {
        let list = root.get(HOOKS).and_then(|hooks| hooks.get(&event)).and_then(Value::as_array);
        for entry in list.into_iter().flatten() {
            let hooks = entry.get("hooks").and_then(Value::as_array);
            if hooks.into_iter().flatten().any(is_our_hook) {
                found.push((event.clone(), entry.clone()));
            }
        }
    }
    found
}

fn is_our_hook(hook: &Value) -> bool {
    hook.get("command").and_then(Value::as_str).is_some_and(is_ours)
}

fn item(event: &str, entry: &Value, depth: usize) -> String {
    let list = json::pretty(&Value::Array(vec![entry.clone()]), depth);
    format!("{}: {list}", Value::from(event))
}

fn values(members: Option<Vec<(String, Range<usize>)>>) -> Vec<Range<usize>> {
    members.unwrap_or_default().into_iter().map(|(_, value)| value).collect()
}

/// Takes the first hook of ours out, and what is left empty by that.
fn cut_one(text: &mut String) -> bool {
    let root = json::root(text);
    let tops = json::members(text, &root).unwrap_or_default();
    let Some(top) = tops.iter().position(|(name, _)| name == HOOKS) else { return false };
    let hooks = tops[top].1.clone();
    let events = json::members(text, &hooks).unwrap_or_default();
    for (at, (_, list)) in events.iter().enumerate() {
        let entries = json::elements(text, list).unwrap_or_default();
        for (index, entry) in entries.iter().enumerate() {
            let Some(inner) = json::member(text, entry, "hooks") else { continue };
            let calls = json::elements(text, &inner).unwrap_or_default();
            let own = |call: &Range<usize>| {
                serde_json::from_str::<Value>(&text[call.clone()]).is_ok_and(|hook| is_our_hook(&hook))
            };
            let Some(call) = calls.iter().position(own) else { continue };
            match (calls.len(), entries.len(), events.len()) {
                (2.., _, _) => json::cut(text, &inner, &calls, call),
                (_, 2.., _) => json::cut(text, list, &entries, index),
                (_, _, 2..) => json::cut(text, &hooks, &values(Some(events)), at),
                _ => json::cut(text, &root, &values(Some(tops)), top),
            }
            return true;
        }
    }
    false
}

fn check(text: &str) -> Result<(), String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(root)) => match root.get(HOOKS) {
            None | Some(Value::Object(_)) => Ok(()),
            Some(_) => Err(format!("{HOOKS} is not an object")),
        },
        Ok(_) => Err("it is not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted() -> Vec<(String, Value)> {
        let hook = |event: &str| json!({ "type": "command", "command": format!("/x/wharf hook {event}") });
        vec![
            ("Stop".to_owned(), json!({ "hooks": [hook("Stop")] })),
            ("PreToolUse".to_owned(), json!({ "matcher": "*", "hooks": [hook("PreToolUse")] })),
        ]
    }

    const FILES: &[&str] = &[
        "{}",
        "{}\n",
        "{\n  \"model\": \"x\"\n}\n",
        "{\"a\":1,\"b\":[1,2.50,1e3],\"c\":\"\\u00e9\"}",
        "{\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"mine\" }] }\n\t\t]\n\t},\n\t\"z\": 1\n}\n",
        "{\n  \"hooks\": {\n    \"Other\": []\n  }\n}\n",
    ];

    #[test]
    fn what_was_put_in_comes_out_again_to_the_byte() {
        for file in FILES {
            let there = with(file, &wanted()).expect(file);
            assert_eq!(ours(&there).len(), 2, "{there}");
            assert_eq!(with(&there, &wanted()).as_ref(), Ok(&there), "twice is once");
            assert_eq!(without(&there).expect(file), *file);
        }
    }

    #[test]
    fn a_new_file_reads_well() {
        let text = with("", &wanted()[..1]).expect("new");
        let expected = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \
                        \"command\": \"/x/wharf hook Stop\",\n            \"type\": \"command\"\n          }\n        \
                        ]\n      }\n    ]\n  }\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn another_command_of_ours_takes_the_place_of_the_old() {
        let old = with("{\n  \"a\": 1\n}\n", &wanted()).expect("old");
        let mut new = wanted();
        new[0].1["hooks"][0]["command"] = "/y/wharf hook Stop".into();
        let text = with(&old, &new).expect("new");
        assert_eq!(ours(&text), new);
        assert_eq!(without(&text).as_deref(), Ok("{\n  \"a\": 1\n}\n"));
    }

    #[test]
    fn a_hook_that_shares_an_entry_goes_alone() {
        let text =
            r#"{"hooks":{"Stop":[{"hooks":[{"command":"a"},{"command":"wharf hook x"},{"command":"b"}]}]}}"#;
        let left = r#"{"hooks":{"Stop":[{"hooks":[{"command":"a"},{"command":"b"}]}]}}"#;
        assert_eq!(without(text).as_deref(), Ok(left));
        let text =
            r#"{"hooks":{"Stop":[{"hooks":[{"command":"wharf hook x"}]}, {"hooks":[{"command":"b"}]}]}}"#;
        let left = r#"{"hooks":{"Stop":[{"hooks":[{"command":"b"}]}]}}"#;
        assert_eq!(without(text).as_deref(), Ok(left), "the first of two");
    }

    #[test]
    fn a_file_that_is_not_what_it_should_be_is_refused() {
        for bad in ["[]", "{", "{\"hooks\": 1}", "// no\n{}"] {
            assert!(with(bad, &wanted()).is_err(), "{bad}");
            assert!(without(bad).is_err(), "{bad}");
        }
        assert!(with("{\"hooks\": {\"Stop\": 1}}", &wanted()).is_err());
    }
}
