//! Defines `Launch`, the fully decided start that a backend runs as it is.

use std::path::PathBuf;

use wharf_model::{Millis, Name, SessionId, Spec, Text, Ticket};

/// A start with everything decided: the backend runs exactly this.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The session.
    pub id: SessionId,
    /// Its name.
    pub name: Name,
    /// Which start of it this is, from 1.
    pub run: u32,
    /// The session's directory on this host. It need not exist. A log in it is continued.
    pub home: PathBuf,
    /// The mark that `env` carries as `WHARF_TOKEN`.
    pub token: String,
    /// When the session was created.
    pub created: Millis,
    /// The command: at least one element.
    pub argv: Vec<Text>,
    /// The command's variables, exactly.
    pub env: Vec<(Text, Text)>,
    /// What was asked for. Its `env` is not looked at here; its `dir` is the directory to run in.
    pub spec: Spec,
}

impl Launch {
    /// The ticket of this start, as a backend of that name hands it to whatever holds the session: nothing runs yet, and
    /// nobody has signed it.
    pub fn ticket(&self, backend: &str) -> Ticket {
        let (id, name, home, spec) =
            (self.id.clone(), self.name.clone(), self.home.as_path(), self.spec.clone());
        let first = Ticket::new(id, self.created, name, backend, home, self.token.as_str(), spec);
        Ticket { run: self.run, ..first }
    }
}
