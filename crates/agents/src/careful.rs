//! What a project's file may say before the user has accepted it: only what makes Wharf more careful.
//!
//! Such a file comes with whatever was cloned. It must not decide which program runs, which keys are pressed, which rows
//! are a question and which an answer, or which files of the user's are touched. It may have Wharf wait longer, refuse
//! more texts, and take more for a question.

use serde::Deserialize;
use toml::{Table, Value};
use wharf_model::{Ignored, State};

use crate::Rule;

/// In which direction a setting may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tightens {
    /// To a larger number, up to this one: nobody waits for ever.
    LargerUpTo(i64),
    /// To this value alone.
    To(bool),
    /// To `refuse`.
    ToRefuse,
}

/// Every setting of a profile that can be made more careful, and how. What does not stand here needs trust; so does a rule
/// (`rule.NAME`), unless it is a new one that stands for *asking*.
const CAREFUL: &[(&str, Tightens)] = &[
    ("keys.pause", Tightens::LargerUpTo(10_000)),
    ("queue.while_working", Tightens::To(false)),
    ("queue.hold_second", Tightens::To(true)),
    ("text.bang", Tightens::ToRefuse),
    ("text.slash", Tightens::ToRefuse),
    ("text.hash", Tightens::ToRefuse),
    ("text.backslash", Tightens::ToRefuse),
    ("text.mention", Tightens::ToRefuse),
];

/// How many rules a project may add before it is trusted: each is looked for at every look.
const MAX_NEW_RULES: usize = 16;

/// How many settings that do not count are named one by one.
const MAX_NAMED: usize = 32;

const UNTRUSTED: &str = "the file is not trusted, and this makes nothing more careful";

/// What of a project's changes to the profile `agent` counts; the rest is named. `below` is that profile as it is without
/// them, `rule_names` says whether any profile at all has a rule of a name: a new one must not mix with it.
pub(crate) fn only(
    agent: &str,
    changes: Table,
    below: &Table,
    rule_names: &dyn Fn(&str) -> bool,
    ignored: &mut Vec<Ignored>,
) -> Table {
    let mut kept = Table::new();
    let mut ignore = |setting: String, why: &str| match ignored.len() {
        ..MAX_NAMED => {
            ignored.push(Ignored { setting: format!("agents.{agent}.{setting}"), why: why.to_owned() });
        }
        MAX_NAMED => ignored.push(Ignored { setting: "…".to_owned(), why: "and so is more".to_owned() }),
        _ => {}
    };
    for (section, value) in changes {
        let Value::Table(settings) = value else {
            ignore(section, UNTRUSTED);
            continue;
        };
        let mut tightened = Table::new();
        for (key, value) in settings {
            let setting = format!("{section}.{key}");
            let verdict = if section == "rule" {
                new_question(&key, &value, tightened.len(), rule_names)
            } else {
                let before = below.get(&section).and_then(|section| section.get(&key));
                tighter(&setting, &value, before)
            };
            match verdict {
                Ok(()) => {
                    tightened.insert(key, value);
                }
                Err(why) => ignore(setting, &why),
            }
        }
        if !tightened.is_empty() {
            kept.insert(section, Value::Table(tightened));
        }
    }
    kept
}

/// Whether a value makes a setting more careful than it is.
fn tighter(setting: &str, value: &Value, before: Option<&Value>) -> Result<(), String> {
    let Some((_, tightens)) = CAREFUL.iter().find(|(name, _)| *name == setting) else {
        return Err(UNTRUSTED.to_owned());
    };
    let (fits, only) = match tightens {
        Tightens::LargerUpTo(most) => {
            let before = before.and_then(Value::as_integer).unwrap_or(0);
            let fits = value.as_integer().is_some_and(|value| (before..=*most).contains(&value));
            (fits, format!("a number from {before} to {most}"))
        }
        Tightens::To(only) => (value.as_bool() == Some(*only), only.to_string()),
        Tightens::ToRefuse => (value.as_str() == Some("refuse"), "\"refuse\"".to_owned()),
    };
    if fits { Ok(()) } else { Err(format!("the file is not trusted, and only {only} is more careful")) }
}

/// Whether a rule adds something that is taken for a question, and changes no rule that there is.
fn new_question(
    name: &str,
    rule: &Value,
    added: usize,
    rule_names: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    if rule_names(name) {
        return Err("the file is not trusted, and there is a rule of this name".to_owned());
    }
    if added >= MAX_NEW_RULES {
        return Err(format!("the file is not trusted, and adds more than {MAX_NEW_RULES} rules"));
    }
    let read = Rule::deserialize(rule.clone()).map_err(|error| error.message().trim().to_owned())?;
    if read.state == State::Asking {
        Ok(())
    } else {
        Err("the file is not trusted, and only a rule for \"asking\" is more careful".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(changes: &str) -> (String, Vec<String>) {
        let below: Table = toml::from_str("[keys]\npause = 50\n[rule.known]\nstate = \"idle\"").unwrap();
        let known = |name: &str| name == "known";
        let mut ignored = Vec::new();
        let kept = only("x", toml::from_str(changes).unwrap(), &below, &known, &mut ignored);
        (toml::to_string(&kept).unwrap(), ignored.into_iter().map(|ignored| ignored.setting).collect())
    }

    #[test]
    fn what_is_more_careful_counts() {
        for careful in [
            "[keys]\npause = 500\n",
            "[queue]\nwhile_working = false\n",
            "[queue]\nhold_second = true\n",
            "[text]\nbang = \"refuse\"\n",
            "[rule.mine]\nin = \"screen\"\nmatch = \"really\"\nstate = \"asking\"\n",
        ] {
            let (kept, ignored) = split(careful);
            assert_eq!(toml::from_str::<Table>(&kept), toml::from_str::<Table>(careful), "{careful}");
            assert_eq!(ignored, Vec::<String>::new(), "{careful}");
        }
    }

    #[test]
    fn everything_else_does_not() {
        for (change, setting) in [
            ("keys.pause = 10", "keys.pause"),
            ("keys.pause = 9223372036854775807", "keys.pause"),
            ("keys.submit = \"1\"", "keys.submit"),
            ("keys.interrupt = [\"1\"]", "keys.interrupt"),
            ("keys.newline = \"Enter\"", "keys.newline"),
            ("queue.while_working = true", "queue.while_working"),
            ("queue.submit = \"1\"", "queue.submit"),
            ("text.bang = \"allow\"", "text.bang"),
            ("text.bang = \"escape\"", "text.bang"),
            ("text.changes = []", "text.changes"),
            ("question.permission.off = true", "question.permission"),
            ("question.permission.deny_keys = [\"1\"]", "question.permission"),
            ("question.new.title = \"x\"", "question.new"),
            ("rule.known.off = true", "rule.known"),
            ("rule.new = { state = \"idle\", in = \"screen\" }", "rule.new"),
            ("rule.new = { state = \"asking\", in = \"screen\", match = \"(\" }", "rule.new"),
            ("composer.prompt = \"x\"", "composer.prompt"),
            ("env.strip = []", "env.strip"),
            ("env.set.A = \"b\"", "env.set"),
            ("launch.argv = [\"evil\"]", "launch.argv"),
            ("hooks.file = \"x\"", "hooks.file"),
            ("stream.line = []", "stream.line"),
            ("transcript.files = []", "transcript.files"),
            ("attend = false", "attend"),
            ("programs = []", "programs"),
            ("base = \"y\"", "base"),
            ("title = \"y\"", "title"),
        ] {
            let (kept, ignored) = split(change);
            assert_eq!(kept, "", "{change}");
            assert_eq!(ignored, [format!("agents.x.{setting}")], "{change}");
        }
    }

    #[test]
    fn rules_and_complaints_have_an_end() {
        let many = |state: &str| -> String {
            (0..100)
                .map(|n| format!("[rule.r{n}]\nstate = \"{state}\"\nin = \"title\"\n"))
                .collect::<Vec<_>>()
                .concat()
        };
        let (kept, ignored) = split(&many("asking"));
        assert_eq!(toml::from_str::<Table>(&kept).unwrap()["rule"].as_table().unwrap().len(), MAX_NEW_RULES);
        assert_eq!(ignored.len(), MAX_NAMED + 1);
        assert_eq!(split(&many("idle")).0, "");
    }
}
