//! Plans the model service's answer to a request, whatever its protocol.

use std::io;
use std::time::Duration;

use serde_json::Value;

use crate::service::directive::Directive;
use crate::service::stream::Events;

/// What a request says, whatever its protocol.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Every text of the user's in the conversation.
    pub(super) users: Vec<String>,
    /// Every result of a command in it.
    pub(super) results: Vec<String>,
    /// Whether the last thing said is the user's; else it is the result of a command.
    pub(super) by_user: bool,
    /// Not a part of the conversation: a title, a summary, a warm-up.
    pub(super) side: bool,
    /// The agent's tool for shell commands.
    pub(super) tool: Option<Value>,
    /// The shape that the answer must have.
    pub(super) schema: Option<Value>,
}

/// An answer: words with a pause after each, or a command to run.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// A number of its own: agents take two answers with one id for parts of the same.
    pub(super) id: usize,
    pub(super) before: Duration,
    pub(super) words: Vec<String>,
    pub(super) pause: Duration,
    pub(super) command: Option<Command>,
}

/// A command that the agent is asked to run.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) tool: Value,
    pub(super) line: String,
    pub(super) id: String,
}

/// How often a slow answer brings a word.
const WORD_INTERVAL: Duration = Duration::from_millis(100);

impl Plan {
    /// What to answer in this turn.
    pub(super) fn of(asked: &Asked, turn: usize) -> Self {
        let said = |text: String| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>();
        if let Some(schema) = &asked.schema {
            return Self { words: vec![shaped(schema).to_string()], ..Self::default() };
        }
        if asked.side {
            return Self { words: said("A short title".to_owned()), ..Self::default() };
        }
        let ok = said(format!("OK {turn}"));
        let last = asked.users.last().filter(|_| asked.by_user).map(String::as_str).unwrap_or_default();
        match (Directive::of(last), &asked.tool) {
            (Directive::Slow(time), _) => {
                let beats = (time.as_millis() / WORD_INTERVAL.as_millis()).max(1) as usize;
                let mut words: Vec<String> = (1..=beats).map(|beat| format!("word{turn}.{beat} ")).collect();
                words.extend(ok);
                Self { words, pause: WORD_INTERVAL, ..Self::default() }
            }
            (Directive::Silent(before), _) => Self { before, words: ok, ..Self::default() },
            (Directive::Tool(line), Some(tool)) => {
                let id = format!("call_{turn}");
                Self { command: Some(Command { tool: tool.clone(), line, id }), ..Self::default() }
            }
            _ => Self { words: ok, ..Self::default() },
        }
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        self.words.concat()
    }

    /// Says the words one by one, as slowly as planned.
    pub(super) fn say(
        &self,
        events: &mut Events<'_>,
        mut each: impl FnMut(&mut Events<'_>, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        events.pause(self.before)?;
        for word in &self.words {
            each(events, word)?;
            if !self.pause.is_zero() {
                events.pause(self.pause)?;
            }
        }
        Ok(())
    }
}

/// Whether a text in the user's place is the agent's own: reminders, instructions, a description of the place.
pub(super) fn is_the_agents(text: &str) -> bool {
    const OPENINGS: &[&str] = &[
        "<system-reminder>",
        "<environment_context>",
        "<user_instructions>",
        "<session_context>",
        "<permissions instructions>",
        "<turn_aborted>",
        "<command-",
        "<local-command",
        "[Request interrupted by user",
        "^C KeyboardInterrupt",
        "# AGENTS.md instructions",
        "This is the Gemini CLI",
        "I am not sharing the full contents of any files with you yet.",
    ];
    let text = text.trim_start();
    OPENINGS.iter().any(|opening| text.starts_with(opening))
}

/// The least value of a JSON schema.
fn shaped(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|choices| choices.first()) {
        return first.clone();
    }
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), shaped(schema))).collect()
        }
        "array" => Value::Array(Vec::new()),
        "integer" | "number" => Value::from(1),
        "boolean" => Value::from(false),
        _ => Value::from("a word"),
    }
}

/// A string, or the `text` of every part of a list.
pub(super) fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// The arguments of a shell tool, by the properties that its schema has.
pub(super) fn arguments(schema: &Value, line: &str) -> Value {
    let mut arguments = serde_json::Map::new();
    let has = |name: &str| schema["properties"].get(name).is_some();
    let command = if has("cmd") { "cmd" } else { "command" };
    let listed = schema["properties"][command]["type"] == "array";
    let value = if listed { serde_json::json!(["bash", "-lc", line]) } else { Value::from(line) };
    arguments.insert(command.to_owned(), value);
    for (name, value) in [
        ("description", "Runs a command of the test"),
        // Codex asks for permission when a command is to leave its sandbox.
        ("sandbox_permissions", "require_escalated"),
        ("justification", "Do you allow the command of the test?"),
    ] {
        if has(name) {
            arguments.insert(name.to_owned(), Value::from(value));
        }
    }
    Value::Object(arguments)
}
