use std::collections::BTreeMap;

use serde::Deserialize;

use crate::hooks::HookRules;
use crate::{Asked, LaunchRules, Locator, Rule, StreamRules, TextRules, TranscriptRules};

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
    /// What it makes of texts.
    pub text: TextRules,
    /// What it prints when it runs without a terminal.
    pub stream: StreamRules,
    /// What it writes on disk about its conversations.
    pub transcript: Option<TranscriptRules>,
    /// What it can be told to call.
    pub hooks: Option<HookRules>,
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
