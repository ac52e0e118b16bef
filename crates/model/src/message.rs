//! Defines messages, how they are delivered, and their receipts.

use serde::{Deserialize, Serialize};

use crate::{Code, Millis, Offset, SessionId};

/// Text for the agent, which is queued, delivered and receipted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its id: the session's own and a number, which says its place in the queue.
    pub id: String,
    /// Whom it is for.
    pub session: SessionId,
    /// The text, whole.
    pub text: String,
    /// How it is to be delivered.
    #[serde(default)]
    pub manner: Manner,
    /// When it was accepted.
    pub created: Millis,
}

/// How a message is to be delivered.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manner {
    /// A second message with the same key is the first one: it is not sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When it may be typed.
    #[serde(default)]
    pub when: When,
    /// The key that submits it; the profile's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit: Option<String>,
    /// Leave it in the composer.
    #[serde(default)]
    pub no_submit: bool,
    /// Stop the agent's turn first.
    #[serde(default)]
    pub interrupt: bool,
    /// The text is meant as it is, though the agent would take it for something else than text.
    #[serde(default)]
    pub raw: bool,
    /// Type though a draft stands in the composer or somebody types.
    #[serde(default)]
    pub over_draft: bool,
    /// Empty the line that somebody has begun first, by what the profile says does that.
    #[serde(default)]
    pub clear_draft: bool,
    /// It is not typed after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
}

/// When a message may be typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Once the agent is idle; a question is waited out.
    #[default]
    Idle,
    /// At once, or not at all: also while it works, where the agent queues by itself; never at a question.
    Now,
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    /// In the queue, on disk.
    Accepted,
    /// In the composer: the application has read it.
    Written,
    /// The submit key was pressed.
    Submitted,
    /// There is proof that the agent took it.
    Confirmed,
    /// It was not typed, and will not be.
    Refused,
    /// Its time passed before it could be typed.
    Expired,
    /// It was typed, or may have been, and there is no proof of what became of it. It is not typed again.
    Unconfirmed,
    /// It was taken back before it was typed.
    Cancelled,
}

impl Progress {
    /// Whether nothing more will happen to it.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Accepted | Self::Written | Self::Submitted)
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Written => "written",
            Self::Submitted => "submitted",
            Self::Confirmed => "confirmed",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::Unconfirmed => "unconfirmed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What became of a message, step by step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The message.
    pub id: String,
    /// Whom it is for.
    pub session: SessionId,
    /// How far it has come.
    pub status: Progress,
    /// What the status rests on.
    pub evidence: String,
    /// How often the submit key was pressed.
    pub attempts: u32,
    /// Why it did not arrive, as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What to do about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Every step.
    pub steps: Vec<Step>,
    /// When the message was accepted.
    pub created: Millis,
    /// Where the log stood when it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
    /// How long the text is, in bytes.
    pub length: u64,
    /// The text's first line, shortened.
    pub summary: String,
}

/// One step of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What it became.
    pub status: Progress,
    /// When.
    pub at: Millis,
    /// What that rests on.
    pub evidence: String,
}
