//! Declares the `Backend` trait: starts sessions, finds them again, and ends them.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use wharf_model::{Capabilities, ExitRecord, Failure, Spec, Ticket};

use crate::{Connection, Files, Freezer, Keeper, Launch, Library, Publisher, Result};

/// A place that can start, find again, and end sessions.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The word by which users choose it.
    fn name(&self) -> &'static str;

    /// What it can do here. What is absent answers with [`wharf_model::Code::Unsupported`].
    fn capabilities(&self) -> Capabilities;

    /// Whether it can be used now, and if not, why and what to do.
    async fn probe(&self) -> Probe;

    /// The same for a session of this spec, which may mean another engine of the place than the usual one.
    async fn probe_for(&self, _spec: &Spec) -> Probe {
        self.probe().await
    }

    /// Starts a command. The ticket and the log are on disk before the command runs; after an error nothing
    /// is left of it.
    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)>;

    /// Finds a session again. An error means that nothing is known, and nothing may be concluded.
    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption>;

    /// Whether something of a session is seen to run, without asking its holder. A session may be able to write its own exit
    /// record, so the record is not believed while this says yes; then [`Backend::adopt`] says what is true.
    fn seen_running(&self, _ticket: &Ticket) -> bool {
        false
    }

    /// Everything here that carries our marks, whether it lives or has ended.
    async fn list(&self) -> Result<Vec<Ticket>>;

    /// Ends whatever is left of a session that is over: stray processes that are beyond doubt its own, scopes,
    /// engine objects. Its directory belongs to the caller. Returns how many processes were ended.
    async fn sweep(&self, ticket: &Ticket) -> Result<u32>;

    /// The processes that [`Backend::sweep`] would end, by their pids on this host; nothing is done to them.
    async fn strays(&self, _ticket: &Ticket) -> Result<Vec<i32>> {
        Ok(Vec::new())
    }

    /// Whether no process of a session whose holder was killed can have hidden from [`Backend::sweep`].
    async fn finds_all(&self, _ticket: &Ticket) -> bool {
        true
    }

    /// Ends a session whose holder cannot be asked, by what its place knows of it beyond doubt. Called only because somebody
    /// asked for it to be killed; [`Backend::adopt`] tells what became of it.
    async fn kill(&self, _ticket: &Ticket) -> Result<()> {
        Err(Failure::unsupported("ending a session whose holder cannot be asked", self.name()))
    }

    /// The files of its sessions' places; none where they cannot be copied.
    fn files(&self) -> Option<&dyn Files> {
        None
    }

    /// What makes its sessions stand still; none where nothing can.
    fn freezer(&self) -> Option<&dyn Freezer> {
        None
    }

    /// Its images; none where sessions run without.
    fn library(&self) -> Option<&dyn Library> {
        None
    }

    /// What stays there after sessions have ended; none where nothing does.
    fn keeper(&self) -> Option<&dyn Keeper> {
        None
    }

    /// Says where ports are reached; none where a session's ports are the host's own.
    fn publisher(&self) -> Option<&dyn Publisher> {
        None
    }

    /// Ends every task that the backend spawned, and returns once they are gone. Sessions run on; connections to them may
    /// break. The engine calls this last when it closes. There is no default: each backend says what it ends.
    async fn close(&self);
}

/// What became of a session that was looked for.
pub enum Adoption {
    /// It lives, and this is the connection.
    Alive(Arc<dyn Connection>),
    /// It ended, and this is how.
    Ended(ExitRecord),
    /// It is gone and left no exit record.
    Lost,
}

/// Whether a backend can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Whether it can be used now.
    pub available: bool,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// What was found, or why it cannot be used.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
}
