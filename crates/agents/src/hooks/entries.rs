//! Builds the hook entries that Wharf adds to an agent's settings, and recognises them by their command.

use serde_json::{Map, Value, json};
use wharf_model::Text;

use super::HookRules;
use crate::{Pattern, Profile};

/// The entries that Wharf wants, by event.
pub(super) fn wanted(rules: &HookRules, command: &[String]) -> Vec<(String, Value)> {
    let line = quoted(command);
    let entry = |matcher: Option<&String>| {
        let mut hook = json!({ "type": "command", "command": line });
        if let (Some(timeout), Value::Object(hook)) = (rules.timeout, &mut hook) {
            hook.insert("timeout".to_owned(), timeout.into());
        }
        match matcher {
            Some(matcher) => json!({ "matcher": matcher, "hooks": [hook] }),
            None => json!({ "hooks": [hook] }),
        }
    };
    rules.events.iter().map(|event| (event.name.clone(), entry(event.matcher.as_ref()))).collect()
}

/// A command as a shell reads it.
pub(super) fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+@%".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Whether a command line is a call of `wharf hook`.
pub(super) fn is_ours(command: &str) -> bool {
    let ours = Pattern::new(r"^'?([^' ]|/[^']*)*?wharf'? hook( |$)").expect("a pattern of our own");
    ours.is_match(command)
}

impl Profile {
    /// Arguments that give one session its hooks, touching no file of the user's. None, where the agent cannot, or where
    /// the arguments already say something else.
    pub fn session_hooks(&self, command: &[String], extra: &[Text]) -> Vec<String> {
        let Some(rules) = self.hooks.as_ref().filter(|rules| !rules.arguments.is_empty()) else {
            return Vec::new();
        };
        let said = |word: &Text| {
            let word = word.lossy();
            rules
                .arguments
                .iter()
                .any(|own| own.starts_with('-') && word.split('=').next() == Some(own.as_str()))
        };
        let other =
            extra.first().is_some_and(|word| self.launch.commands.iter().any(|verb| *verb == word.lossy()));
        if other || extra.iter().any(said) {
            return Vec::new();
        }
        let mut events: Map<String, Value> = Map::new();
        for (event, entry) in wanted(rules, command) {
            events.insert(event, json!([entry]));
        }
        let settings = json!({ "hooks": events }).to_string();
        rules.arguments.iter().map(|word| word.replace("{settings}", &settings)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_command_is_ours() {
        for ours in ["wharf hook claude", "/usr/bin/wharf hook", "'/a b/wharf' hook claude", "./wharf hook x"]
        {
            assert!(is_ours(ours), "{ours}");
        }
        for other in
            ["echo wharf hook", "wharf run", "wharfinger hook", "my-wharf-thing", "true; wharf hook x"]
        {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = ["/a b/wharf", "hook", "it's", "$x", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"'/a b/wharf' hook 'it'\''s' '$x' ''");
    }
}
