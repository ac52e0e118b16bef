//! Finding a session on another host again.

use std::time::Duration;

use tokio::time::Instant;
use wharf_backend::{Adoption, Result};
use wharf_local::held;
use wharf_model::{Code, Failure, Ticket};

use super::door::{Door, Key};
use super::mirror::{Fate, Mirror};
use super::site::Site;
use crate::owner::container_name;
use crate::place::{Place, over};

/// How long it may take to be carried to a holder, and to hear from it.
const GREETING: Duration = Duration::from_secs(20);
/// How long whoever has the door may take to write a record down.
const RECORD: Duration = Duration::from_secs(3);

impl Place {
    /// Finds a session whose container is on another host. Whoever has its door already is asked; else it is opened.
    pub(crate) async fn adopt_far(&self, ticket: &Ticket) -> Result<Adoption> {
        let home = ticket.dir.as_path();
        if !home.exists() {
            // There is nowhere to bring anything to; the engine may know that there is nothing left.
            return self.look(ticket, "its directory is gone").await;
        }
        if let Some(key) = Key::take(home).map_err(|failure| unknown(&failure.message))? {
            // It may have been written while we had no key.
            if let Some(record) = held::read_exit(home, ticket.run) {
                return Ok(Adoption::Ended(record));
            }
            if let Some(fate) = self.reopen(ticket, key).await? {
                return Ok(fate);
            }
        }
        let why = match tokio::time::timeout(GREETING, held::find(home)).await {
            Ok(Ok((stream, welcome))) => {
                let first = held::first_status(0, ticket.spec.size, Some(&welcome));
                return Ok(Adoption::Alive(held::connect(home.to_owned(), stream, first)));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        let until = Instant::now() + RECORD;
        loop {
            if let Some(record) = held::read_exit(home, ticket.run) {
                return Ok(Adoption::Ended(record));
            }
            if Instant::now() >= until {
                return Err(unknown(&why));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Opens the door again, or finds that there is nothing behind it any more.
    async fn reopen(&self, ticket: &Ticket, key: Key) -> Result<Option<Adoption>> {
        let (engine, found) = self.find(ticket).await.map_err(|failure| unknown(&failure.message))?;
        let Some(container) = found else { return Ok(Some(over(ticket, None))) };
        let far = || unknown("the engine that its ticket names is one of this host");
        let site = Site::of(&engine, &container.id, ticket).ok_or_else(far)?;
        if container.state.paused {
            let (name, flavour) = (container_name(&ticket.id), self.options.flavour.name());
            return Err(unknown(&format!("container {name} is paused"))
                .hint(format!("`{flavour} unpause {name}` over there lets it go on")));
        }
        if container.state.running {
            Door::open(site, key, None)?;
            return Ok(None);
        }
        let (tell, _) = tokio::sync::watch::channel(Fate::Open);
        let failed = |error: std::io::Error| unknown(&format!("its last output is not here yet: {error}"));
        let mut mirror = Mirror::open(site.into(), tell).map_err(failed)?;
        let fate = mirror.finish().await.map_err(failed)?;
        let record = held::read_exit(ticket.dir.as_path(), ticket.run).filter(|_| fate == Fate::Whole);
        Ok(Some(record.map_or(Adoption::Lost, Adoption::Ended)))
    }
}

fn unknown(why: &str) -> Failure {
    Failure::new(Code::Unreachable, format!("cannot reach the holder: {why}"))
}
