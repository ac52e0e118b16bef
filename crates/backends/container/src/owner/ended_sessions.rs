//! Containers of sessions that are over: taken away once that is known, also where it happened while nobody was there.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use wharf_backend::Result;
use wharf_boundary::Dir;
use wharf_model::{SessionId, Ticket};

use crate::containers::Containers;
use crate::session_dirs::SessionDirs;
use crate::ticket_data::{TicketData, is_kept};

/// When it is tried to take a container away whose session is over.
const REMOVE_RETRY_DELAYS: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];

/// How long an engine may go on making a container that was asked for by one who is gone.
const CREATE_TIMEOUT: Duration = Duration::from_secs(120);

/// What stands in a session's directory until its container is known to be gone: the run that it was made for.
const NOTE: &str = "left";
/// Longer than any number of a run.
const MAX_NOTE_LEN: u64 = 64;

impl Containers {
    /// Takes the container of a session that was found over away, and has nobody wait for it. Also where this daemon dies
    /// before that: the next one finds it noted.
    pub(crate) fn remove_in_background(self: &Arc<Self>, ticket: &Ticket) {
        if is_kept(ticket) {
            return;
        }
        let (containers, ticket) = (Arc::clone(self), ticket.clone());
        let note = ticket.dir.as_path().join(NOTE);
        if let Err(error) = fs::write(&note, ticket.run.to_string()) {
            tracing::debug!(session = %ticket.id, %error, "it is not noted that its container may be left");
        }
        tokio::spawn(async move {
            containers.remove_with_retries(&ticket).await;
            // With the session's directory it is gone already.
            let _ = fs::remove_file(note);
        });
    }

    /// Takes the container of a session that is over away. An engine that is silent for a while is asked again; one that
    /// stays so finds it left when it is next used.
    pub(crate) async fn remove_with_retries(&self, ticket: &Ticket) {
        for wait in REMOVE_RETRY_DELAYS {
            tokio::time::sleep(wait).await;
            match self.remove(ticket).await {
                // One that was asked for and is not there yet may still come.
                Ok(()) if may_be_made(ticket) => {}
                Ok(()) => return,
                Err(failure) => {
                    tracing::warn!(session = %ticket.id, %failure, "its container is left for now");
                }
            }
        }
    }

    /// Looks once, and has nobody wait for it, for containers of sessions that ended while nobody was there. Where no
    /// session is over, no engine is asked.
    pub(crate) fn remove_ended_once(self: &Arc<Self>, tickets: &[Ticket]) {
        let is_over = |ticket: &&Ticket| {
            ticket.spec.adopt.is_none()
                && !is_kept(ticket)
                && SessionDirs::of(ticket.dir.as_path()).has_exit_record()
        };
        let over: Vec<Ticket> = tickets.iter().filter(is_over).cloned().collect();
        if self.removed_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        // Few, if any: those that an earlier daemon did not come to.
        for ticket in tickets.iter().filter(|ticket| is_noted(ticket)) {
            self.remove_in_background(ticket);
        }
        if over.is_empty() {
            return;
        }
        let containers = Arc::clone(self);
        tokio::spawn(async move {
            let engines: BTreeSet<Option<String>> =
                over.iter().map(|ticket| TicketData::of(ticket).endpoint).collect();
            for address in engines {
                let left = match containers.sessions_at(address).await {
                    Ok(left) => left,
                    Err(failure) => {
                        tracing::debug!(%failure, "containers of sessions that are over are left for now");
                        continue;
                    }
                };
                // Mostly none: a container goes with its session where somebody is there.
                for ticket in over.iter().filter(|ticket| left.contains(&ticket.id)) {
                    // The record of an earlier run says nothing of this one.
                    if SessionDirs::of(ticket.dir.as_path()).exit_record(ticket.run).is_none() {
                        continue;
                    }
                    containers.remove_with_retries(ticket).await;
                }
            }
        });
    }

    /// The sessions of which an engine has a container.
    async fn sessions_at(&self, address: Option<String>) -> Result<HashSet<SessionId>> {
        let engine = self.engine_named(address.as_deref()).await?;
        let owner = self.owner()?;
        let listed = engine.containers(&owner.selector()).await?;
        Ok(listed.iter().filter_map(|container| owner.session(&container.labels)).collect())
    }
}

/// Whether a start was cut off so short ago that the engine may still be at it.
fn may_be_made(ticket: &Ticket) -> bool {
    let asked = SystemTime::UNIX_EPOCH + Duration::from_millis(ticket.created.0);
    ticket.started.0 == 0 && asked.elapsed().is_ok_and(|since| since < CREATE_TIMEOUT)
}

/// Whether the container of this very run may be left.
fn is_noted(ticket: &Ticket) -> bool {
    let noted = Dir::open(ticket.dir.as_path()).and_then(|dir| dir.read(NOTE, MAX_NOTE_LEN));
    noted.is_ok_and(|run| run == ticket.run.to_string().as_bytes())
}
