//! Containers that stay after their end: the next run of their session goes on in them.

use std::time::Duration;

use wharf_backend::{Launch, Result};
use wharf_local::held;
use wharf_model::{Code, Container, Failure, Ticket};

use crate::engine::Engine;
use crate::engine::inspect::Found;
use crate::owner::container_name;
use crate::place::Place;
use crate::rooms::Rooms;

/// How long a holder that has told its end may take to go.
const HOLDER_EXIT_TIMEOUT: Duration = Duration::from_secs(4);

/// The container of an earlier run, where this one is to go on in it. One that is gone is made anew.
pub(crate) async fn earlier(
    place: &Place,
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
    let (owner, found) = (place.owner()?, engine.container(&container_name(&launch.id)).await?);
    Ok(found.filter(|found| owner.owns(found, &launch.id)))
}

/// Sees to it that a container which was kept does not run: its holder may be about to go.
pub(crate) async fn still(engine: &Engine, found: &Found) -> Result<()> {
    if !found.state.running {
        return Ok(());
    }
    if tokio::time::timeout(HOLDER_EXIT_TIMEOUT, engine.ended(&found.id)).await.is_ok() {
        return Ok(());
    }
    engine.kill(&found.id).await
}

impl Place {
    /// Ends what runs in the container of a session that is over, and leaves it there.
    pub(crate) async fn quieten(&self, ticket: &Ticket) -> Result<()> {
        // It may have been started again meanwhile, in the same container.
        if held::read_ticket(ticket.dir.as_path()).is_ok_and(|newest| newest.run > ticket.run) {
            return Ok(());
        }
        let (engine, found) = self.find(ticket).await?;
        let Some(found) = found.filter(|found| found.state.running) else { return Ok(()) };
        if Rooms::of(ticket.dir.as_path()).record(ticket.run).is_none() {
            return Err(Failure::new(Code::Running, "the session's container still runs"));
        }
        still(&engine, &found).await
    }
}
