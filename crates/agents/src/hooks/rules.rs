//! Declares a profile's hook rules: the settings file, its style, and the events to be called for.

use serde::Deserialize;

use crate::Shape;

/// How an agent is told what to call, and what its calls say.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookRules {
    /// The settings file.
    pub file: String,
    /// How the entries stand in it.
    pub style: Style,
    /// The events to be called for. An agent may reject a whole file for one name that it does not know.
    #[serde(default)]
    pub events: Vec<HookEvent>,
    /// How long a hook may take, in the agent's own unit.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// The contents of a file of its own: `{command}` is a list of words in JSON.
    #[serde(default)]
    pub contents: String,
    /// Arguments that give one session the hooks: `{settings}` is the JSON of the entries.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What the payloads mean.
    #[serde(default)]
    pub told: Vec<Shape>,
}

/// How hooks stand in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// JSON: `{"hooks": {"Event": [{"hooks": [{"type": "command", "command": "…"}]}]}}`.
    Json,
    /// TOML: `notify = ["…"]`, one for the whole file.
    Notify,
    /// A file of its own.
    File,
}

/// An event that an agent calls hooks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookEvent {
    /// Its name.
    pub name: String,
    /// Which tools or kinds it is for, where the event takes that.
    #[serde(default)]
    pub matcher: Option<String>,
}
