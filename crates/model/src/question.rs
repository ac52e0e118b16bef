//! Defines an agent's question, its choices, and the answers to it.

use serde::{Deserialize, Serialize};

use crate::Report;

/// What an agent asks and waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question itself.
    pub title: String,
    /// What it is about: a command, a file, an edit.
    #[serde(default)]
    pub detail: String,
    /// What can be answered, in the order on the screen.
    #[serde(default)]
    pub choices: Vec<Choice>,
}

/// One answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// As it stands on the screen.
    pub label: String,
    /// The keys that give it.
    pub keys: Vec<String>,
    /// What it means.
    pub kind: ChoiceKind,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChoiceKind {
    /// Yes, this once.
    Allow,
    /// Yes, and do not ask again. Profiles may say `allow_always`.
    #[serde(alias = "allow_always")]
    Always,
    /// No.
    Deny,
    /// Something else.
    Other,
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// What was asked.
    pub question: Question,
    /// The answer's label.
    pub choice: String,
    /// The state after it.
    pub report: Report,
}

/// What an agent answered to a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// Where it comes from: `agent` for its own record, `screen` for what stood on the screen.
    pub source: String,
    /// The message's receipt.
    pub receipt: crate::Receipt,
}
