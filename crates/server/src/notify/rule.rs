//! Parses one notification rule and matches it against a session's state.

use wharf_api::NotifyRule;
use wharf_model::{Session, State};

use super::webhook::Webhook;

/// Whom to tell of what.
#[derive(Debug)]
pub(super) struct Rule {
    on: Vec<State>,
    agent: Option<String>,
    group: Option<String>,
    name: Option<String>,
    pub(super) target: Target,
}

/// Who is told.
#[derive(Debug)]
pub(super) enum Target {
    /// A program and its arguments, with places for values in them.
    Command(Vec<String>),
    /// A server.
    Webhook(Webhook),
}

impl TryFrom<NotifyRule> for Rule {
    type Error = String;

    fn try_from(written: NotifyRule) -> Result<Self, String> {
        if written.on.is_empty() {
            return Err("on = [] names no state".to_owned());
        }
        let target = match (written.command, written.webhook) {
            (Some(_), Some(_)) => return Err("it has both a command and a webhook: write two".to_owned()),
            (None, None) => return Err("it has neither a command nor a webhook".to_owned()),
            (Some(command), None) if command.first().is_none_or(String::is_empty) => {
                return Err("its command names no program".to_owned());
            }
            (Some(command), None) => Target::Command(command),
            (None, Some(url)) => Target::Webhook(Webhook::new(&url, &written.headers)?),
        };
        let (on, agent, group, name) = (written.on, written.agent, written.group, written.name);
        Ok(Self { on, agent, group, name, target })
    }
}

impl Rule {
    /// Whether it is for a session that has just come to its state.
    pub(super) fn is_for(&self, session: &Session) -> bool {
        let is = |wanted: &Option<String>, has: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| has.is_some_and(|has| matches(wanted, has)))
        };
        self.on.contains(&session.state)
            && is(&self.agent, session.agent.as_deref())
            && is(&self.group, session.group.as_ref().map(wharf_model::Group::as_str))
            && is(&self.name, Some(session.name.as_str()))
    }
}

/// A word, or the beginning of one and `*`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => pattern == text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn rule(text: &str) -> Result<Rule, String> {
        toml::from_str::<NotifyRule>(text).map_err(|error| error.to_string())?.try_into()
    }

    #[test]
    fn a_rule_has_one_target_and_a_state() {
        rule("on = ['idle']\ncommand = ['true']").unwrap();
        rule("on = ['exited']\nwebhook = 'http://localhost:1/x'").unwrap();
        for bad in [
            "command = ['true']",
            "on = []\ncommand = ['true']",
            "on = ['sleepy']\ncommand = ['true']",
            "on = ['idle']",
            "on = ['idle']\ncommand = []",
            "on = ['idle']\ncommand = ['']",
            "on = ['idle']\ncommand = ['true']\nwebhook = 'http://x/'",
            "on = ['idle']\nwebhook = 'ftp://x/'",
        ] {
            assert!(rule(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_is_a_word_or_its_beginning() {
        assert!(matches("a", "a") && matches("a*", "abc") && matches("*", "x"));
        assert!(!matches("a", "ab") && !matches("b*", "ab"));
    }
}
