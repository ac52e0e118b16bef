//! Adds and removes Wharf's command in the `notify` key of an agent's TOML settings.

use toml_edit::{Array, DocumentMut, Item, Value};

/// The key that names the one program to call.
const NOTIFY: &str = "notify";

/// What stands in the way of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The file is not TOML.
    Broken(String),
    /// Another program is called already.
    Taken(String),
}

/// The text with this command as the one to call.
pub(super) fn with(text: &str, command: &[String]) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    match document.get(NOTIFY) {
        Some(item) if words(item) == command => return Ok(text.to_owned()),
        Some(item) if !is_ours(item) => return Err(Obstacle::Taken(item.to_string().trim().to_owned())),
        _ => {}
    }
    let list: Array = command.iter().map(String::as_str).collect();
    document.insert(NOTIFY, Item::Value(Value::Array(list)));
    Ok(document.to_string())
}

/// The text without our command.
pub(super) fn without(text: &str) -> Result<String, Obstacle> {
    let mut document = parse(text)?;
    if !document.get(NOTIFY).is_some_and(is_ours) {
        return Ok(text.to_owned());
    }
    document.remove(NOTIFY);
    Ok(document.to_string())
}

/// Whether our command is the one that is called.
pub(super) fn has(text: &str) -> bool {
    parse(text).is_ok_and(|document| document.get(NOTIFY).is_some_and(is_ours))
}

fn parse(text: &str) -> Result<DocumentMut, Obstacle> {
    text.parse().map_err(|error: toml_edit::TomlError| Obstacle::Broken(error.message().to_owned()))
}

fn words(item: &Item) -> Vec<String> {
    let list = item.as_array().into_iter().flatten();
    list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn is_ours(item: &Item) -> bool {
    let words = words(item);
    let program = words.first().and_then(|word| word.rsplit('/').next());
    program == Some("wharf") && words.get(1).is_some_and(|word| word == "hook")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Vec<String> {
        ["/x/wharf", "hook", "codex"].map(str::to_owned).to_vec()
    }

    #[test]
    fn it_goes_in_before_the_tables_and_comes_out_again() {
        for file in ["", "# mine\nmodel = \"x\" # why\n\n[a.b]\nc = 1\n", "[a]\nb = 1\n", "model = 'x'\n"] {
            let there = with(file, &command()).expect(file);
            assert!(has(&there), "{there}");
            let value: toml::Table = toml::from_str(&there).expect("toml");
            assert_eq!(value["notify"].as_array().map(Vec::len), Some(3));
            assert_eq!(with(&there, &command()).as_ref(), Ok(&there), "twice is once");
            assert_eq!(without(&there).as_deref(), Ok(file));
        }
    }

    #[test]
    fn anothers_program_is_left_alone() {
        let text = "notify = [\"notify-send\", \"Codex\"]\n";
        assert!(matches!(with(text, &command()), Err(Obstacle::Taken(_))));
        assert_eq!(without(text).as_deref(), Ok(text));
        assert!(!has(text));
        assert!(matches!(with("a = [", &command()), Err(Obstacle::Broken(_))));
    }
}
