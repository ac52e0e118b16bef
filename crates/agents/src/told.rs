//! Defines the facts that agents report through hooks, transcripts and JSON streams.

use serde::Serialize;
use serde_json::Value;
use wharf_model::State;

/// A fact that an agent told about itself: by a hook, in its transcript, in its stream.
///
/// The kinds: `session.started`, `session.ended`, `message.queued` and `turn.started` (`prompt`), `turn.ended`
/// (`message`, or `reason` where it was not completed), `assistant` (`text`), `tool.started` (`id`, `name`, `input`), `tool.ended` (`id`, `output`, `failed`), `permission.asked`
/// (`tool`, `input`), `permission.answered` (`answer`), `notice` (`message`), `usage`, and `other` for what no rule knows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    /// What it is.
    pub kind: String,
    /// The state that follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The rest.
    pub data: Value,
}

impl Told {
    /// What no rule knows, as it came.
    pub(crate) fn other(data: Value) -> Self {
        Self { kind: "other".to_owned(), state: None, data }
    }

    /// The text that was submitted, where this is proof of that.
    pub fn prompt(&self) -> Option<&str> {
        let proof = matches!(self.kind.as_str(), "turn.started" | "message.queued");
        self.data.get("prompt").filter(|_| proof).and_then(Value::as_str)
    }

    /// What the agent said: a part of its answer, or the last part at a turn's end.
    pub fn answer(&self) -> Option<&str> {
        let key = match self.kind.as_str() {
            "assistant" => "text",
            "turn.ended" => "message",
            _ => return None,
        };
        self.data.get(key).and_then(Value::as_str)
    }

    /// The id of the conversation, where this tells it.
    pub fn conversation(&self) -> Option<&str> {
        self.data.get("conversation").and_then(Value::as_str)
    }
}
