//! Defines the ticket, the data by which any engine finds a session again.

use serde::{Deserialize, Serialize};

use crate::{Millis, Name, ProcessIdentity, Scope, SessionId, Spec, Text};

/// All that is needed to find a session again after anything. Plain data, on disk before the command runs.
#[must_use = "a ticket that is dropped leaves a session that nobody can find"]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    /// The session.
    pub id: SessionId,
    /// Its name at the time of writing.
    pub name: Name,
    /// Which start of the session this is, from 1.
    pub run: u32,
    /// The backend that started it.
    pub backend: String,
    /// The session's directory: ticket, log, socket, exit record.
    pub dir: Text,
    /// A random mark that the command's environment carries as `WHARF_TOKEN`.
    pub token: String,
    /// When the session was created.
    pub created: Millis,
    /// When this run was started; zero until it was.
    #[serde(default, skip_serializing_if = "Millis::is_zero")]
    pub started: Millis,
    /// The holder, where the backend has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<ProcessIdentity>,
    /// The command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ProcessIdentity>,
    /// How its processes are kept together.
    #[serde(default, skip_serializing_if = "Scope::is_none")]
    pub scope: Scope,
    /// What was asked for, with names and ports filled in.
    pub spec: Spec,
    /// What only the backend understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<String>,
}

impl Ticket {
    /// The ticket of a session's first start: nothing runs yet, and nobody has signed it.
    pub fn new(
        id: SessionId,
        created: Millis,
        name: Name,
        backend: impl Into<String>,
        dir: impl Into<Text>,
        token: impl Into<String>,
        spec: Spec,
    ) -> Self {
        Self {
            id,
            name,
            run: 1,
            backend: backend.into(),
            dir: dir.into(),
            token: token.into(),
            created,
            started: Millis(0),
            holder: None,
            command: None,
            scope: Scope::default(),
            spec,
            private: None,
        }
    }
}
