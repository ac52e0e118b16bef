//! Defines the session as the API and `--json` show it, and what it uses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ExitRecord, Group, Limits, MadeContainer, Millis, Mounted, Name, Offset, Pin, Port, ProcessIdentity,
    Project, Restart, Scope, SessionId, Size, Source, State, Text,
};

/// A session as every face shows it: the first ten fields are what scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Name,
    /// Its group.
    pub group: Option<Group>,
    /// Its backend.
    pub backend: String,
    /// What it is doing.
    pub state: State,
    /// The command's pid while it runs.
    pub pid: Option<i32>,
    /// The directory that it runs in.
    pub dir: Text,
    /// When it was created.
    pub created: Millis,
    /// How many terminals are attached.
    pub attached: u32,
    /// How it ended.
    pub exit: Option<ExitRecord>,
    /// The command.
    pub argv: Vec<Text>,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// A terminal, or pipes.
    pub tty: bool,
    /// Which start of it this is, from 1.
    pub run: u32,
    /// Why it is in this state, where there is more to say than the state does.
    #[serde(default)]
    pub detail: Option<String>,
    /// Since when it is in this state.
    #[serde(rename = "state_since", alias = "since")]
    pub since: Millis,
    /// Who says that it is in this state.
    #[serde(rename = "state_source", default)]
    pub source: Source,
    /// What the state rests on.
    #[serde(rename = "state_evidence", default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The agent profile that it is driven by.
    #[serde(default)]
    pub agent: Option<String>,
    /// The agent's own name for the conversation, where it is known.
    #[serde(default)]
    pub conversation: Option<String>,
    /// The session's directory: its log is in `log/` there.
    pub path: Text,
    /// Reserved ports.
    #[serde(default)]
    pub ports: Vec<Port>,
    /// When it is started again.
    #[serde(default)]
    pub restart: Restart,
    /// Limits in force.
    #[serde(default)]
    pub limits: Limits,
    /// How its processes are kept together.
    #[serde(default)]
    pub scope: Scope,
    /// The holder.
    #[serde(default)]
    pub holder: Option<ProcessIdentity>,
    /// The terminal's size.
    #[serde(default)]
    pub size: Size,
    /// What keeps the session from the host: `none` for processes of the user's own.
    pub isolation: String,
    /// The file to which output is copied.
    #[serde(default)]
    pub copy_to: Option<Text>,
    /// What environments are in force, in words.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Why it runs in this backend, where that was left open.
    #[serde(default)]
    pub chosen: Option<String>,
    /// What somebody else started and is only watched and typed at: the backend, and its own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// Whether it was made to stand still. Its state is then what it was before.
    #[serde(default)]
    pub paused: bool,
    /// Whether its command is stopped by a signal. Its state is then what it was before.
    #[serde(default)]
    pub suspended: bool,
    /// Everything that its place mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mounted>,
    /// The container that it has, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<MadeContainer>>,
    /// What the paths of the host that it was given meant at its first start, and mean at each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<Pin>,
    /// What was made of the project's own file when it was started, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Box<Project>>,
}

/// What a session uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Processor time so far, in milliseconds.
    pub cpu: Millis,
    /// Memory now, in bytes.
    pub memory: u64,
    /// Processes now.
    pub processes: u32,
    /// The end of the log.
    pub log_end: Offset,
    /// The oldest byte that the log still has.
    pub log_start: Offset,
    /// When the session last printed something.
    #[serde(default)]
    pub last_output: Option<Millis>,
    /// When something was last typed at it.
    #[serde(default)]
    pub last_input: Option<Millis>,
    /// Bytes that its processes have read from and written to disks so far; absent where that cannot be counted.
    #[serde(default)]
    pub io: Option<DiskUse>,
    /// Bytes that came and went by the network so far; absent where it has no network of its own.
    #[serde(default)]
    pub network: Option<NetworkUse>,
}

/// Bytes from and to disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Bytes that were read.
    pub read: u64,
    /// Bytes that were written.
    pub written: u64,
}

/// Bytes by the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// Bytes that came.
    pub received: u64,
    /// Bytes that went.
    pub sent: u64,
}
