//! What goes over the wire. Unknown fields are ignored, missing ones have defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wharf_model::{
    Capabilities, ExitRecord, Failure, Group, Millis, Name, Session, SessionId, Spec, State, Text,
};

/// `GET /v1/daemon`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// The daemon's pid.
    pub pid: i32,
    /// The socket that it listens on.
    pub socket: Text,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started: Millis,
    /// Sessions that are not over.
    pub live: u32,
    /// Where the instance lives.
    pub state_dir: Text,
}

/// `POST /v1/sessions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartRequest {
    /// What to run.
    pub spec: Spec,
    /// A live session of that name, or else of that group, is the answer and not an error.
    #[serde(default)]
    pub ensure: bool,
}

/// The answer to [`StartRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The session.
    pub session: Session,
    /// Whether this request made it.
    pub created: bool,
    /// The hard limits that it is under since the daemon is, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hard_limits: Vec<String>,
}

/// A session as `GET /v1/sessions?brief=true` lists it: what scripts rely on, and the command. A long list is
/// short to send and to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
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
    #[serde(default)]
    pub argv: Vec<Text>,
    /// Whether it was made to stand still.
    #[serde(default)]
    pub paused: bool,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether its command is stopped by a signal.
    #[serde(default)]
    pub suspended: bool,
}

impl From<&Session> for Summary {
    fn from(session: &Session) -> Self {
        Self {
            id: session.id.clone(),
            name: session.name.clone(),
            group: session.group.clone(),
            backend: session.backend.clone(),
            state: session.state,
            pid: session.pid,
            dir: session.dir.clone(),
            created: session.created,
            attached: session.attached,
            exit: session.exit.clone(),
            argv: session.argv.clone(),
            paused: session.paused,
            labels: session.labels.clone(),
            suspended: session.suspended,
        }
    }
}

/// Which sessions an operation is for: all that match every part that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector {
    /// Names or ids; each must exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// A group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Labels with these values; an empty value asks only for the label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Every session.
    #[serde(default)]
    pub all: bool,
}

/// `POST /v1/{stop,kill,signal,restart,remove,pause,unpause}`: one operation on many sessions, in parallel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManyRequest {
    /// Which.
    pub selector: Selector,
    /// Stop and restart: the grace; the session's own, or 5 s, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Millis>,
    /// Signal: its number.
    #[serde(default)]
    pub signal: i32,
    /// Signal: the whole tree and not the command alone.
    #[serde(default)]
    pub tree: bool,
    /// Remove: end it first when it runs.
    #[serde(default)]
    pub force: bool,
    /// Restart: decide anew what the paths of the host mean that the session was given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repin: bool,
}

/// What an operation did to one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The session's name.
    pub name: Name,
    /// How it ended, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitRecord>,
    /// Why it did not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// `POST /v1/sessions/{name}/rename`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameRequest {
    /// The new name.
    pub name: Name,
}

/// `POST /v1/sessions/{name}/env`: for what starts later in the session (exec, restart).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvRequest {
    /// To set.
    #[serde(default)]
    pub set: Vec<(Text, Text)>,
    /// To take away.
    #[serde(default)]
    pub unset: Vec<Text>,
}

/// `POST /v1/sessions/{name}/pipe`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipeRequest {
    /// The file to copy output to from now on; none stops the copying.
    pub file: Option<Text>,
    /// Begin with what the log has already.
    #[serde(default)]
    pub from_start: bool,
}

/// One line of `GET /v1/backends`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendStatus {
    /// Its name.
    pub name: String,
    /// Whether it is used when none is named.
    pub default: bool,
    /// Whether it can be used now.
    pub available: bool,
    /// Its version.
    pub version: Option<String>,
    /// What was found, or why not.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// `POST /v1/gc`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcRequest {
    /// Only say what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Remove sessions that ended longer ago than this; none keeps them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Millis>,
}
