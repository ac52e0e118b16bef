//! Defines how a spec asks for an agent: its profile and its conversation.

use serde::{Deserialize, Serialize};

use crate::Text;

/// How an agent is launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLaunch {
    /// The profile.
    pub name: String,
    /// Which conversation.
    #[serde(default)]
    pub conversation: Conversation,
    /// Further arguments, for the agent itself.
    #[serde(default)]
    pub arguments: Vec<Text>,
    /// Whether it is given hooks by its arguments, where it can take them so.
    #[serde(default)]
    pub hooks: bool,
    /// The conversation's id: assigned at launch or resumed. A restart goes on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Which conversation an agent begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conversation {
    /// A new one.
    #[default]
    New,
    /// The latest of the directory.
    Continue,
    /// This one.
    Resume(String),
    /// A copy of this one.
    Fork(String),
}
