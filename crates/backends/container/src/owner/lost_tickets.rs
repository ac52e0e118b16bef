//! Makes tickets anew for sessions whose containers run though no directory speaks of them.

use std::time::{Duration, SystemTime};

use wharf_backend::Result;
use wharf_model::{Code, Container, Failure, Millis, Name, Scope, ScopeKind, SessionId, Spec, Text, Ticket};

use crate::containers::Containers;
use crate::engine::Engine;
use crate::engine::inspect::Found;
use crate::owner::orphaned_containers::{self, Verdict};
use crate::owner::{self, has_install_id};
use crate::ticket_data::TicketData;

/// How long the engine may take to tell what runs there: a daemon that starts waits for it.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(3);
/// How many tickets are made.
const MAX_TICKETS: usize = 1024;
/// What stands for a command that nobody knows any more.
const UNKNOWN_COMMAND: &str = "(unknown)";

impl Containers {
    /// The sessions that the daemon's own engine still runs and that have no directory, as when the state directory was
    /// restored from a backup that is older. Fails where it cannot be asked: it may have some. Other engines are not asked:
    /// a session may have named them, and they could tell of any number.
    pub(crate) async fn lost_tickets(&self) -> Result<Vec<Ticket>> {
        // Without an install id no engine ever got a container of ours.
        if !has_install_id(&self.options.state) {
            return Ok(Vec::new());
        }
        let late = |_| Failure::new(Code::Unreachable, "the engine did not list its containers in time");
        tokio::time::timeout(SEARCH_TIMEOUT, self.search()).await.map_err(late)?
    }

    async fn search(&self) -> Result<Vec<Ticket>> {
        let (owner, mut all) = (self.owner()?, Vec::new());
        let engine = self.connect(&self.endpoint(None).await?).await?;
        let found = orphaned_containers::find(&engine, owner, &self.options.sessions).await?;
        let running = found.into_iter().filter(|orphan| orphan.what == Verdict::Doubtful);
        for orphan in running.take(MAX_TICKETS) {
            if let Some(container) = engine.container(&orphan.container).await?
                && owner.owns(&container, &orphan.session)
            {
                all.push(self.ticket_of(&engine, &container, orphan.session)?);
            }
        }
        Ok(all)
    }

    /// So much of a ticket as the labels of a container tell. The session can be seen and killed, and no more.
    fn ticket_of(&self, engine: &Engine, found: &Found, id: SessionId) -> Result<Ticket> {
        let told = owner::told(found);
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let mut spec = Spec::new([UNKNOWN_COMMAND], "/");
        spec.container = Some(Box::new(Container { keep: told.kept, ..Container::of(&found.image) }));
        spec.backend = Some(self.options.flavour.name().to_owned());
        let name = told.name.map_or_else(|| id.as_str().parse::<Name>(), Ok)?;
        let now = Millis::from(SystemTime::now());
        Ok(Ticket {
            dir: Text::from(self.options.sessions.join(id.as_str())),
            id,
            name,
            run: told.run,
            backend: self.options.flavour.name().to_owned(),
            // Nobody knows the first one any more, so nothing carries this.
            token: format!("{:032x}", u128::from_le_bytes(random)),
            created: now,
            started: now,
            holder: None,
            command: None,
            scope: Scope { kind: ScopeKind::Namespace, dirs: Vec::new() },
            spec,
            private: Some(TicketData::at(engine.endpoint(), Some(found.id.clone())).text()),
        })
    }
}
