//! Reports and removes what is left in engines by accident, and removes kept containers with their session.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use async_trait::async_trait;
use wharf_backend::{Keeper, Leftover, Result};
use wharf_holder_client::session as held;
use wharf_model::{Failure, Ticket};

use crate::containers::Containers;
use crate::engine::Engine;
use crate::engine::endpoint::Endpoint;
use crate::owner::orphaned_containers::{self, OrphanedContainer, Verdict};
use crate::owner::{container_name, has_install_id};
use crate::session_start::off_thread;
use crate::shared_container::membership;
use crate::ticket_data::TicketData;

#[async_trait]
impl Keeper for Containers {
    async fn forget(&self, ticket: &Ticket) -> Result<()> {
        self.remove(ticket).await
    }

    async fn leftovers(&self, dry_run: bool) -> Result<Vec<Leftover>> {
        // Without an install id no engine ever got a container of ours, and asking would create the id.
        if !has_install_id(&self.options.state) {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for (address, used) in self.addresses().await? {
            // Connect without the cleanup of a first use: this run alone decides what goes.
            let found = match self.connect(&Endpoint::named(&address, "a session's ticket")).await {
                Ok(engine) => self.leftovers_in(&engine, dry_run).await,
                Err(failure) => Err(failure),
            };
            match found {
                Ok(found) => all.extend(found),
                // The default engine may never have existed.
                Err(failure) if used => all.push(unreachable_engine(&address, &failure)),
                Err(_) => {}
            }
        }
        Ok(all)
    }
}

impl Containers {
    /// The addresses of engines that may have something of ours, and whether they were certainly used.
    async fn addresses(&self) -> Result<BTreeMap<String, bool>> {
        let mut all = BTreeMap::new();
        if let Ok(usual) = self.endpoint(None).await {
            all.insert(usual.address, false);
        }
        {
            let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(engines.iter().map(|engine| (engine.endpoint().address.clone(), true)));
        }
        let (sessions, name) = (self.options.sessions.clone(), self.options.flavour.name());
        let named = off_thread(move || {
            let homes = std::fs::read_dir(sessions).into_iter().flatten().flatten();
            let tickets = homes.filter_map(|home| held::read_ticket(&home.path()).ok());
            let own = tickets.filter(|ticket| ticket.backend == name);
            own.filter_map(|ticket| TicketData::of(&ticket).endpoint).collect::<Vec<_>>()
        });
        all.extend(named.await?.into_iter().map(|address| (address, true)));
        Ok(all)
    }

    async fn leftovers_in(&self, engine: &Engine, dry_run: bool) -> Result<Vec<Leftover>> {
        let (owner, sessions) = (self.owner()?, &self.options.sessions);
        let mut all = Vec::new();
        for OrphanedContainer { session, container, what } in
            orphaned_containers::find(engine, owner, sessions).await?
        {
            let thing = format!("container {} of {}", container_name(&session), self.options.flavour.name());
            let taken = match what {
                Verdict::Doubtful => Err(what.why().to_owned()),
                _ if dry_run => Ok(()),
                _ => engine.remove(&container).await.map_err(|failure| failure.message),
            };
            all.push(match taken {
                Ok(()) => Leftover { thing, why: what.why().to_owned(), kept: false },
                Err(why) => Leftover { thing, why, kept: true },
            });
        }
        let state = [self.options.state.as_path(), sessions];
        for name in membership::remove_unused(engine, owner, state, &self.sharing_turn, dry_run).await? {
            let thing = format!("container {name} of {}", self.options.flavour.name());
            all.push(Leftover { thing, why: "no session is in it".to_owned(), kept: false });
        }
        Ok(all)
    }
}

fn unreachable_engine(address: &str, failure: &Failure) -> Leftover {
    Leftover { thing: format!("what the engine at {address} has"), why: failure.message.clone(), kept: true }
}
