//! Finds a session on another host again.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;
use wharf_backend::{Adoption, Result};
use wharf_holder_client::session as held;
use wharf_model::{Code, Failure, Ticket};

use super::container::RemoteContainer;
use super::log_mirror::Outcome;
use super::socket_proxy::{ProxyLock, SocketProxy};
use crate::containers::{Containers, end_seen_by_engine};
use crate::owner::container_name;

/// How long the proxy and the holder may take to answer together.
const GREETING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the process that holds the proxy lock may take to write an exit record.
const RECORD_TIMEOUT: Duration = Duration::from_secs(3);

impl Containers {
    /// Finds a session whose container is on another host. Uses the socket proxy that another process runs; starts
    /// one where there is none.
    pub(crate) async fn adopt_remote(&self, ticket: &Ticket) -> Result<Adoption> {
        let home = ticket.dir.as_path();
        if !home.exists() {
            // Without the directory there is no place for the log; the engine may know that the container is gone
            // too.
            return self.ask_engine(ticket, "its directory is gone").await;
        }
        if self.is_lost(ticket) {
            return Ok(Adoption::Lost);
        }
        if let Some(lock) = ProxyLock::take(home).map_err(|failure| unknown(&failure.message))? {
            // The previous proxy may have written the record before it released the lock.
            if let Some(record) = held::read_exit(home, ticket.run) {
                return Ok(Adoption::Ended(record));
            }
            if let Some(over) = self.start_proxy(ticket, lock).await? {
                return Ok(over);
            }
        }
        let why = match tokio::time::timeout(GREETING_TIMEOUT, held::find(home)).await {
            Ok(Ok((stream, welcome))) => {
                let first = held::first_status(0, ticket.spec.size, Some(&welcome));
                return Ok(Adoption::Alive(held::connect(&self.tasks, home.to_owned(), stream, first)));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        let until = Instant::now() + RECORD_TIMEOUT;
        loop {
            if let Some(record) = held::read_exit(home, ticket.run) {
                return Ok(Adoption::Ended(record));
            }
            if self.is_lost(ticket) {
                return Ok(Adoption::Lost);
            }
            if Instant::now() >= until {
                return Err(unknown(&why));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Starts a socket proxy, or finds that the container is gone. Of a container that does not run, the proxy
    /// downloads the log and the record in the background: that may take longer than the caller waits.
    async fn start_proxy(&self, ticket: &Ticket, lock: ProxyLock) -> Result<Option<Adoption>> {
        let (engine, found) = self.find(ticket).await.map_err(|failure| unknown(&failure.message))?;
        let Some(container) = found else { return Ok(Some(end_seen_by_engine(ticket, None))) };
        let local = || unknown("the engine that its ticket names is one of this host");
        let remote = RemoteContainer::of(&engine, &container.id, ticket).ok_or_else(local)?;
        if container.state.paused {
            let (name, flavour) = (container_name(&ticket.id), self.options.flavour.name());
            return Err(unknown(&format!("container {name} is paused"))
                .hint(format!("`{flavour} unpause {name}` over there lets it go on")));
        }
        let proxy = SocketProxy::open(remote, lock, None)?;
        let mut proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        // Forget complete sessions: their exit record says everything.
        proxies.retain(|_, (_, outcome)| *outcome.borrow() != Outcome::Complete);
        proxies.insert(ticket.id.clone(), (ticket.run, proxy.outcome()));
        Ok(None)
    }

    /// Whether a proxy found that the end of the session will never be known. True once, then forgotten.
    fn is_lost(&self, ticket: &Ticket) -> bool {
        let mut proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        let known = proxies.get(&ticket.id).filter(|(run, _)| *run == ticket.run);
        let lost = known.is_some_and(|(_, outcome)| *outcome.borrow() == Outcome::Lost);
        if lost {
            proxies.remove(&ticket.id);
        }
        lost
    }
}

fn unknown(why: &str) -> Failure {
    Failure::new(Code::Unreachable, format!("cannot reach the holder: {why}"))
}
