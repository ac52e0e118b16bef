//! Hooks: how an agent tells of itself, and the entries in its settings that make it do so.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_model::{Code, Failure, Name, Text};

use crate::Client;
use crate::client::Answer;

/// `POST /v1/hook`: what an agent tells of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookRequest {
    /// The session's id or name.
    pub session: String,
    /// The session's mark, which its processes alone know.
    pub token: String,
    /// The agent's profile; the session's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the agent gave, as it gave it.
    pub payload: Value,
}

/// What is done with the entries in an agent's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookAction {
    /// They are written, unless they are there.
    Install,
    /// They are taken away, and nothing else is.
    Remove,
    /// They are looked for.
    Status,
}

/// `POST /v1/agents/{name}/hooks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSettings {
    /// What is done.
    pub action: HookAction,
    /// The program that the agent shall call.
    pub command: Text,
    /// The caller's variables that say where settings are: the daemon may have others.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
}

/// The answer to [`HookSettings`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookState {
    /// The agent.
    pub agent: String,
    /// Whether our entries are there now.
    pub installed: bool,
    /// Whether this request changed anything.
    #[serde(default)]
    pub changed: bool,
    /// The settings.
    pub file: Text,
}

impl Client {
    /// Hands on what an agent's hook was given.
    pub async fn hook(&self, request: &HookRequest) -> Answer<()> {
        self.post::<_, Option<()>>("/v1/hook".into(), request).await.map(drop)
    }

    /// Writes, removes or looks for our entries in an agent's settings.
    pub async fn hook_settings(&self, agent: &str, request: &HookSettings) -> Answer<HookState> {
        let name = agent.parse().ok().filter(|name: &Name| name.group().is_none()).ok_or_else(|| {
            Failure::new(Code::NotFound, format!("there is no agent {agent:?}"))
                .hint("`wharf agents` lists them")
        })?;
        self.post(format!("/v1/agents/{name}/hooks"), request).await
    }
}
