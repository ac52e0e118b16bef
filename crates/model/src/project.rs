//! What a project's own file, `wharf.toml`, changes for the sessions in it: decided once, at a session's start.

use serde::{Deserialize, Serialize};

use crate::{Millis, Text};

/// What was made of a project's file when a session was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// The file.
    pub file: Text,
    /// SHA-256 of its bytes, in hexadecimal digits; empty where they were not read.
    #[serde(default)]
    pub sha256: String,
    /// Whether the user had accepted these very bytes.
    #[serde(default)]
    pub trusted: bool,
    /// What of it counts, as TOML.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub changes: String,
    /// What does not count.
    #[serde(default)]
    pub ignored: Vec<Ignored>,
}

/// A setting of a project's file that does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// The setting, as a path of keys; `*` for the whole file.
    pub setting: String,
    /// Why it does not count.
    pub why: String,
}

impl Project {
    /// What is told of what does not count: a line each, where there is any.
    pub fn told(&self) -> Vec<String> {
        let file = self.file.lossy();
        let line = |ignored: &Ignored| match ignored.setting.as_str() {
            "*" => format!("{file} is ignored: {}", ignored.why),
            setting => format!("{file}: {setting} is ignored: {}", ignored.why),
        };
        self.ignored.iter().map(line).collect()
    }
}

/// A project's file that the user has accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// The file.
    pub file: Text,
    /// SHA-256 of the bytes that were accepted.
    pub sha256: String,
    /// When.
    pub at: Millis,
}

/// A project's file, as somebody is shown it who is to accept it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectView {
    /// The file.
    pub file: Text,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// What stands in it.
    pub text: String,
    /// Whether these bytes are accepted already.
    pub trusted: bool,
    /// What stood in it when it was last accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}
