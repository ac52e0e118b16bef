//! Finding a session on another host again.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;
use wharf_backend::{Adoption, Result};
use wharf_local::held;
use wharf_model::{Code, Failure, Ticket};

use super::door::{Door, Key};
use super::mirror::Fate;
use super::site::Site;
use crate::owner::container_name;
use crate::place::{Place, over};

/// How long it may take to be carried to a holder, and to hear from it.
const GREETING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long whoever has the door may take to write a record down.
const RECORD_TIMEOUT: Duration = Duration::from_secs(3);

impl Place {
    /// Finds a session whose container is on another host. Whoever has its door already is asked; else it is opened.
    pub(crate) async fn adopt_far(&self, ticket: &Ticket) -> Result<Adoption> {
        let home = ticket.dir.as_path();
        if !home.exists() {
            // There is nowhere to bring anything to; the engine may know that there is nothing left.
            return self.look(ticket, "its directory is gone").await;
        }
        if self.is_lost(ticket) {
            return Ok(Adoption::Lost);
        }
        if let Some(key) = Key::take(home).map_err(|failure| unknown(&failure.message))? {
            // It may have been written while we had no key.
            if let Some(record) = held::read_exit(home, ticket.run) {
                return Ok(Adoption::Ended(record));
            }
            if let Some(over) = self.reopen(ticket, key).await? {
                return Ok(over);
            }
        }
        let why = match tokio::time::timeout(GREETING_TIMEOUT, held::find(home)).await {
            Ok(Ok((stream, welcome))) => {
                let first = held::first_status(0, ticket.spec.size, Some(&welcome));
                return Ok(Adoption::Alive(held::connect(home.to_owned(), stream, first)));
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

    /// Opens the door again, or finds that there is nothing behind it any more. What a container left that does not run is
    /// brought home by the door as well: that may take longer than whoever asks has time.
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
        let door = Door::open(site, key, None)?;
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        // The record of one that is whole tells all.
        doors.retain(|_, (_, fate)| *fate.borrow() != Fate::Whole);
        doors.insert(ticket.id.clone(), (ticket.run, door.fate()));
        Ok(None)
    }

    /// Whether a door that was opened again found that nobody will ever know. Told once.
    fn is_lost(&self, ticket: &Ticket) -> bool {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        let known = doors.get(&ticket.id).filter(|(run, _)| *run == ticket.run);
        let lost = known.is_some_and(|(_, fate)| *fate.borrow() == Fate::Lost);
        if lost {
            doors.remove(&ticket.id);
        }
        lost
    }
}

fn unknown(why: &str) -> Failure {
    Failure::new(Code::Unreachable, format!("cannot reach the holder: {why}"))
}
