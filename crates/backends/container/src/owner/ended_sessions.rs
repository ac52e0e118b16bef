//! Removes containers of sessions that are over, also of those that ended while no daemon ran.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use wharf_backend::Result;
use wharf_boundary::Dir;
use wharf_model::{SessionId, Ticket};

use crate::containers::Containers;
use crate::session_dirs::SessionDirs;
use crate::ticket_data::{TicketData, is_kept};

/// The waits before each attempt to remove a container.
const REMOVE_RETRY_DELAYS: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];

/// How long an engine may go on creating a container whose requester is gone.
const CREATE_TIMEOUT: Duration = Duration::from_secs(120);

/// A file in a session's directory that names the run whose container may be left. It goes once the container is
/// gone. The name on disk is older.
const NOTE: &str = "left";
/// The longest content of that file, in bytes.
const MAX_NOTE_LEN: u64 = 64;

impl Containers {
    /// Removes the container of a session that was found over, in the background. Notes it first: if this daemon
    /// dies, the next one finds the note.
    pub(crate) fn remove_in_background(self: &Arc<Self>, ticket: &Ticket) {
        if is_kept(ticket) {
            return;
        }
        let (containers, ticket) = (Arc::clone(self), ticket.clone());
        let note = ticket.dir.as_path().join(NOTE);
        if let Err(error) = write_note(ticket.dir.as_path(), ticket.run) {
            tracing::debug!(session = %ticket.id, %error, "it is not noted that its container may be left");
        }
        self.tasks.spawn_work(async move {
            containers.remove_with_retries(&ticket).await;
            // Gone already if the session's directory is.
            let _ = fs::remove_file(note);
        });
    }

    /// Removes the container of a session that is over, and tries again while the engine is silent. If that fails
    /// too, it is removed at the engine's next first use.
    pub(crate) async fn remove_with_retries(&self, ticket: &Ticket) {
        for wait in REMOVE_RETRY_DELAYS {
            tokio::time::sleep(wait).await;
            match self.remove(ticket).await {
                // The engine may still be creating it.
                Ok(()) if may_be_made(ticket) => {}
                Ok(()) => return,
                Err(failure) => {
                    tracing::warn!(session = %ticket.id, %failure, "its container is left for now");
                }
            }
        }
    }

    /// Once, in the background: removes containers of sessions that ended while no daemon ran. Asks no engine if no
    /// session is over.
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
        // Few, if any: those that an earlier daemon did not finish.
        for ticket in tickets.iter().filter(|ticket| is_noted(ticket)) {
            self.remove_in_background(ticket);
        }
        if over.is_empty() {
            return;
        }
        let containers = Arc::clone(self);
        self.tasks.spawn(async move {
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
                // Mostly none: a running daemon removes a container with its session.
                for ticket in over.iter().filter(|ticket| left.contains(&ticket.id)) {
                    // An exit record of an earlier run does not count.
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
        Ok(listed.iter().filter_map(|container| owner.session(container.labels())).collect())
    }
}

/// Whether a start was interrupted so recently that the engine may still be creating its container.
fn may_be_made(ticket: &Ticket) -> bool {
    let asked = SystemTime::UNIX_EPOCH + Duration::from_millis(ticket.created.0);
    ticket.started.0 == 0 && asked.elapsed().is_ok_and(|since| since < CREATE_TIMEOUT)
}

/// Notes which run's container may be left.
fn write_note(dir: &Path, run: u32) -> io::Result<()> {
    Dir::open(dir)?.replace(NOTE, run.to_string().as_bytes(), 0o600)
}

/// Whether there is a note about the container of this very run.
fn is_noted(ticket: &Ticket) -> bool {
    let noted = Dir::open(ticket.dir.as_path()).and_then(|dir| dir.read(NOTE, MAX_NOTE_LEN));
    noted.is_ok_and(|run| run == ticket.run.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_the_place_of_the_note_is_not_written_through() {
        let root = tempfile::tempdir().unwrap();
        let precious = root.path().join("precious");
        fs::write(&precious, "p").unwrap();
        symlink(&precious, root.path().join(NOTE)).unwrap();
        write_note(root.path(), 3).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "p");
        assert_eq!(fs::read_to_string(root.path().join(NOTE)).unwrap(), "3");
    }
}
