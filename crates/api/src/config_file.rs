//! Reads the user's configuration file, `config.toml`: every key that it may have, and what is wrong with it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::{DeserializeOwned, Error as _, IntoDeserializer};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wharf_model::{Code, Failure, Home, Names, State};

/// What one key says, or what is wrong with it: a wrong key stops only what needs it.
pub type Setting<T> = Result<T, Failure>;

/// The configuration file. A key that is not there has its default.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConfigFile {
    /// `detach_keys`: the keys that leave an attached session.
    pub detach_keys: Setting<Option<String>>,
    /// `backend`: the backend of sessions that name none.
    pub backend: Setting<Option<String>>,
    /// `[names]`: what the names of sessions are unique in.
    pub names: Setting<Names>,
    /// `[backends]`: how `auto` chooses.
    pub backends: Setting<Backends>,
    /// `[[notify]]`: who is told of what.
    pub notify: Setting<Vec<NotifyRule>>,
    /// The keys that mean nothing.
    pub unknown: Vec<String>,
}

/// The table `[backends]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Backends {
    /// The order in which `auto` tries the backends; empty for the usual one.
    #[serde(default)]
    pub auto: Vec<String>,
}

/// One table of `[[notify]]`: whom to tell of what.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NotifyRule {
    /// The states that are told.
    pub on: Vec<State>,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Only sessions of this group.
    pub group: Option<String>,
    /// Only sessions of this name.
    pub name: Option<String>,
    /// The program that is run, and its arguments.
    #[serde(default, deserialize_with = "words")]
    pub command: Option<Vec<String>>,
    /// The address that is told.
    #[serde(default, deserialize_with = "address")]
    pub webhook: Option<String>,
    /// Headers of the webhook's requests.
    #[serde(default, deserialize_with = "headers")]
    pub headers: BTreeMap<String, String>,
}

/// The way out of a mistake that is no single key's.
const ANY_HINT: &str = "correct the file, or move it away";
const NAMES_HINT: &str = "[names] has scope = \"instance\" or scope = \"group\"";
const BACKENDS_HINT: &str = "[backends] has auto = [\"local\", \"tmux\", …]";
/// The way out of a wrong rule for notifications.
pub const NOTIFY_HINT: &str =
    "a rule has on = [\"asking\", …] and command = [\"program\", …] or webhook = \"http://…\"";

impl ConfigFile {
    /// Reads the file of an instance; none is the same as an empty one.
    pub fn load(home: &Home) -> Result<Self, Failure> {
        let path = home.config_file();
        let text = wharf_boundary::read_config(&path)
            .map_err(|error| Failure::system(format_args!("cannot read {}", path.display()), &error))?;
        Self::parse(&text.unwrap_or_default(), &path)
    }

    /// Reads the text of such a file; `path` is what messages call it.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let source = Source { text, path };
        let table = DeTable::parse(text).map_err(|error| source.wrong(&error, ANY_HINT))?;
        let mut table = table.into_inner();
        Ok(Self {
            detach_keys: source.take(&mut table, "detach_keys", ANY_HINT),
            backend: source.take(&mut table, "backend", ANY_HINT),
            names: source.take(&mut table, "names", NAMES_HINT),
            backends: source.take(&mut table, "backends", BACKENDS_HINT),
            notify: source.notify(&mut table),
            unknown: table.keys().map(|key| key.get_ref().to_string()).collect(),
        })
    }
}

/// A text, and the file that it came from.
struct Source<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Source<'_> {
    fn take<T: DeserializeOwned + Default>(
        &self,
        table: &mut DeTable<'_>,
        key: &str,
        hint: &str,
    ) -> Setting<T> {
        let Some(value) = table.remove(key) else { return Ok(T::default()) };
        T::deserialize(value.into_deserializer()).map_err(|error| self.wrong(&error, hint))
    }

    fn notify(&self, table: &mut DeTable<'_>) -> Setting<Vec<NotifyRule>> {
        // What stands here may be a secret, and the usual message for a wrong type has the value in it.
        if let Some(value) = table.get("notify")
            && let Some(odd) = odd_rule(value)
        {
            return Err(self.at(odd.span().start, "a rule is a table, [[notify]]", NOTIFY_HINT));
        }
        self.take(table, "notify", NOTIFY_HINT)
    }

    fn wrong(&self, error: &toml::de::Error, hint: &str) -> Failure {
        self.at(error.span().map_or(0, |span| span.start), error.message().trim(), hint)
    }

    fn at(&self, byte: usize, what: &str, hint: &str) -> Failure {
        let before = self.text.get(..byte).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Failure::new(Code::Invalid, format!("{}:{line}:{column}: {what}", self.path.display())).hint(hint)
    }
}

/// What is in the place of a rule and is none.
fn odd_rule<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Option<&'a Spanned<DeValue<'i>>> {
    match value.get_ref().as_array() {
        Some(rules) => rules.iter().find(|rule| !rule.get_ref().is_table()),
        None => Some(value),
    }
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    hidden(from, "command is a list of words, [\"program\", …]").map(Some)
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    hidden(from, "webhook is an address, \"http://…\"").map(Some)
}

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    hidden(from, "headers is a table of names and values, { Name = \"value\" }")
}

/// A value that may hold a secret: what is wrong with it is told without it.
fn hidden<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D, what: &str) -> Result<T, D::Error> {
    T::deserialize(toml::Value::deserialize(from)?).map_err(|_| D::Error::custom(what))
}

#[cfg(test)]
mod tests {
    use wharf_model::NameScope;

    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, Failure> {
        ConfigFile::parse(text, Path::new("c"))
    }

    #[test]
    fn known_keys_are_read_and_others_named() {
        let text = "detach_keys = \"ctrl-a d\"\nnew = 1\n[later]\nx = 2\n[names]\nscope = \"group\"\n\
                    [backends]\nauto = ['tmux', 'local']\n\
                    [[notify]]\non = ['idle']\ncommand = ['true']\n\
                    [[notify]]\non = ['exited']\nwebhook = 'http://x/'\nheaders = { A = 'b' }\n";
        let file = parse(text).unwrap();
        assert_eq!(file.detach_keys, Ok(Some("ctrl-a d".into())));
        assert_eq!(file.backend, Ok(None));
        assert_eq!(file.names, Ok(Names { scope: NameScope::Group }));
        assert_eq!(file.backends.unwrap().auto, ["tmux", "local"]);
        let notify = file.notify.unwrap();
        assert_eq!(notify[0].command, Some(vec!["true".to_owned()]));
        assert_eq!(notify[1].headers, [("A".to_owned(), "b".to_owned())].into());
        assert_eq!(file.unknown, ["later", "new"]);
    }

    #[test]
    fn errors_name_line_and_column() {
        assert!(parse("a = 1\nb = \n").unwrap_err().message.starts_with("c:2:"));
        for (text, place) in [
            ("backend = 5", "c:1:11: "),
            ("[names]\nscope = 'team'", "c:2:9: "),
            ("[names]\nscoop = 1", "c:2:1: "),
            ("\n[backends]\nauto = 'tmux'", "c:3:8: "),
            ("[[notify]]\non = ['sleepy']", "c:2:7: "),
            ("[[notify]]\non = ['idle']\ncommand = 'x'", "c:3:11: "),
        ] {
            let file = parse(text).unwrap();
            let wrong = [file.backend.err(), file.names.err(), file.backends.err(), file.notify.err()];
            let wrong: Vec<Failure> = wrong.into_iter().flatten().collect();
            assert_eq!(wrong.len(), 1, "one wrong key is no other's mistake: {wrong:?}");
            assert!(wrong[0].message.starts_with(place), "{}", wrong[0].message);
            assert!(wrong[0].code == Code::Invalid && wrong[0].hint.is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn what_may_be_a_secret_is_in_no_message() {
        for text in [
            "notify = 'hidden'",
            "notify = ['hidden']",
            "[[notify]]\non = ['idle']\ncommand = 'curl hidden'",
            "[[notify]]\non = ['idle']\ncommand = [{ hidden = 'hidden' }]",
            "[[notify]]\non = ['idle']\nwebhook = ['hidden']",
            "[[notify]]\non = ['idle']\nwebhook = 'x'\nheaders = 'A: hidden'",
            "[[notify]]\non = ['idle']\nwebhook = 'x'\nheaders = { A = ['hidden'] }",
            "[[notify]]\nwebhook = 'hidden'",
        ] {
            let failure = parse(text).unwrap().notify.unwrap_err();
            assert!(!failure.message.contains("hidden"), "{failure}");
        }
        let failure = parse("[[notify]]\nwebhook = 'hidden\n").unwrap_err();
        assert!(!failure.message.contains("hidden"), "{failure}");
    }

    #[test]
    fn no_file_is_an_empty_one() {
        let root = tempfile::tempdir().unwrap();
        let file = ConfigFile::load(&Home::below(root.path())).unwrap();
        assert_eq!((file.detach_keys, file.names), (Ok(None), Ok(Names::default())));
        assert!(file.unknown.is_empty());
    }
}
