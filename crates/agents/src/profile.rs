//! Declares `Profile`, the data that describes one agent program, with its variables, keys and queueing.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::hooks::HookRules;
use crate::{
    AnswerRules, Asked, LaunchRules, Locator, Pattern, RetryRules, Rule, StreamRules, TextRules,
    TranscriptRules,
};

/// How one agent program is launched, resumed, driven and recognised.
///
/// Everything has a default, so that a profile says only what is special about its program.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its name, as `--agent` takes it.
    pub name: String,
    /// The program's name, for people.
    pub title: String,
    /// The profile that it is built on.
    pub base: Option<String>,
    /// Names and packages by which a command line is known to be this program.
    pub programs: Vec<String>,
    /// Whether a session of it is watched from its start, so that its state is known before anybody asks.
    pub attend: bool,
    /// How it is launched.
    pub launch: LaunchRules,
    /// Its variables.
    pub env: Variables,
    /// Its keys.
    pub keys: Keys,
    /// What it does with messages while it works.
    pub queue: Queueing,
    /// What its states look like.
    #[serde(rename = "rule")]
    pub rules: BTreeMap<String, Rule>,
    /// Where its input box stands.
    pub composer: Option<Locator>,
    /// What it asks.
    #[serde(rename = "question")]
    pub questions: BTreeMap<String, Asked>,
    /// What a turn that failed looks like, and what has it go on.
    pub retry: RetryRules,
    /// What it makes of texts.
    pub text: TextRules,
    /// What its answers look like on the screen.
    pub answer: AnswerRules,
    /// What it prints when it runs without a terminal.
    pub stream: StreamRules,
    /// What it writes on disk about its conversations.
    pub transcript: Option<TranscriptRules>,
    /// What it can be told to call.
    pub hooks: Option<HookRules>,
}

/// How many rules and questions a profile may have: each is looked for at every look.
const MAX_RULES: usize = 128;

impl Profile {
    /// Every pattern that is looked for on the screen, by its name.
    pub(crate) fn patterns(&self) -> Vec<(String, &Pattern)> {
        let mut all = Vec::new();
        for (name, rule) in &self.rules {
            all.push((format!("rule.{name}.match"), rule.pattern.as_ref()));
            all.push((format!("rule.{name}.unless"), rule.unless.as_ref()));
        }
        for (name, asked) in &self.questions {
            for (what, pattern) in [
                ("title", Some(&asked.title)),
                ("top", asked.top.as_ref()),
                ("choice", asked.choice.as_ref()),
                ("allow", asked.allow.as_ref()),
                ("always", asked.always.as_ref()),
                ("deny", asked.deny.as_ref()),
                ("foot", asked.foot.as_ref()),
                ("answer", asked.answer.as_ref()),
            ] {
                all.push((format!("question.{name}.{what}"), pattern));
            }
        }
        all.push(("retry.failed".to_owned(), self.retry.failed.as_ref()));
        all.push(("retry.newer".to_owned(), self.retry.newer.as_ref()));
        if let Some(composer) = &self.composer {
            for (what, pattern) in [
                ("prompt", &composer.prompt),
                ("above", &composer.above),
                ("end", &composer.end),
                ("not_below", &composer.not_below),
                ("side", &composer.side),
                ("collapsed", &composer.collapsed),
            ] {
                all.push((format!("composer.{what}"), pattern.as_ref()));
            }
            all.extend(composer.placeholder.iter().map(|one| ("composer.placeholder".to_owned(), Some(one))));
        }
        all.push(("answer.mark".to_owned(), self.answer.mark.as_ref()));
        all.extend(self.answer.drop.iter().map(|one| ("answer.drop".to_owned(), Some(one))));
        all.into_iter().filter_map(|(name, pattern)| Some((name, pattern?))).collect()
    }

    /// Why it is too much to look for.
    pub(crate) fn excess(&self) -> Option<String> {
        let count = self.rules.len() + self.questions.len();
        (count > MAX_RULES).then(|| format!("{count} rules and questions are more than {MAX_RULES}"))
    }
}

/// What a session's variables need.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variables {
    /// Variables to set, unless the caller did.
    pub set: BTreeMap<String, String>,
    /// Variables of another agent around this one, which it would take for its own. A last `*` stands for any end.
    pub strip: Vec<String>,
}

impl Variables {
    /// Whether a variable must not reach the agent.
    pub fn strips(&self, name: &str) -> bool {
        self.strip.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => pattern == name,
        })
    }
}

/// The keys of a program, by the names that `wharf keys` takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Submits what stands in the input box.
    pub submit: String,
    /// Makes a new line in it.
    pub newline: Option<String>,
    /// Stops the turn: these presses, one after the other.
    pub interrupt: Vec<String>,
    /// Empties the input box.
    pub clear: Vec<String>,
    /// The least pause between a text and the submit key, in milliseconds.
    pub pause: u64,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            submit: "Enter".to_owned(),
            newline: None,
            interrupt: vec!["C-c".to_owned()],
            clear: Vec::new(),
            pause: 0,
        }
    }
}

/// What a program does with messages while it works.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queueing {
    /// It keeps them and takes them up later.
    pub while_working: bool,
    /// It merges them: a second is held back until it took up the first.
    pub hold_second: bool,
    /// The key that submits a message while it works, where that is another one.
    pub submit: Option<String>,
}
