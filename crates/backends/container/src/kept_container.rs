//! Containers that stay after their end, so that the next run of their session continues in them.

use std::time::Duration;

use wharf_backend::{Launch, Result};
use wharf_holder_client::session as held;
use wharf_model::{Code, Container, Failure, Ticket};

use crate::containers::Containers;
use crate::engine::Engine;
use crate::engine::inspect::Found;
use crate::owner::container_name;
use crate::session_dirs::SessionDirs;

/// How long a holder may take to exit once it has written its exit record.
const HOLDER_EXIT_TIMEOUT: Duration = Duration::from_secs(4);

/// The kept container of an earlier run; none where the session keeps none, or it is gone.
pub(crate) async fn find_earlier(
    containers: &Containers,
    engine: &Engine,
    container: &Container,
    launch: &Launch,
) -> Result<Option<Found>> {
    if !container.keep {
        return Ok(None);
    }
    if container.reuse {
        let message =
            "a container that sessions share goes with the last of them, and cannot be kept for one";
        return Err(Failure::new(Code::Invalid, message).hint("leave out --keep or --reuse"));
    }
    if engine.is_remote() {
        return Err(Failure::unsupported("keeping a container", "an engine on another host"));
    }
    if launch.run <= 1 {
        return Ok(None);
    }
    let (owner, found) = (containers.owner()?, engine.container(&container_name(&launch.id)).await?);
    Ok(found.filter(|found| owner.owns(found, &launch.id)))
}

/// Waits until a kept container has stopped, and kills it if its holder does not exit in time.
pub(crate) async fn ensure_stopped(engine: &Engine, found: &Found) -> Result<()> {
    if !found.state.running {
        return Ok(());
    }
    if tokio::time::timeout(HOLDER_EXIT_TIMEOUT, engine.ended(&found.id)).await.is_ok() {
        return Ok(());
    }
    engine.kill(&found.id).await
}

impl Containers {
    /// Stops the container of a session that is over, and keeps it.
    pub(crate) async fn stop_kept_container(&self, ticket: &Ticket) -> Result<()> {
        // The session may have been started again meanwhile, in the same container.
        if held::read_ticket(ticket.dir.as_path()).is_ok_and(|newest| newest.run > ticket.run) {
            return Ok(());
        }
        let (engine, found) = self.find(ticket).await?;
        let Some(found) = found.filter(|found| found.state.running) else { return Ok(()) };
        if SessionDirs::of(ticket.dir.as_path()).exit_record(ticket.run).is_none() {
            return Err(Failure::new(Code::Running, "the session's container still runs"));
        }
        ensure_stopped(&engine, &found).await
    }
}
