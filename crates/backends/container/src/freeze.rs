//! Pauses containers and lets them go on, by their engine.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use wharf_backend::{Freezer, Frozen, Result};
use wharf_model::{Failure, Ticket};

use crate::containers::Containers;

/// How long an engine may take to pause a container.
const FREEZE_TIMEOUT: Duration = Duration::from_secs(8);

/// How long to wait for a holder before asking whether its container is paused.
const HOLDER_FREEZE_TIMEOUT: Duration = Duration::from_millis(200);

#[async_trait]
impl Freezer for Containers {
    async fn freeze(&self, ticket: &Ticket, still: bool) -> Result<()> {
        if ticket.spec.container.as_ref().is_some_and(|container| container.reuse) {
            return Err(Failure::unsupported("a pause", "a container that sessions share")
                .hint("run the session without --reuse: then it has a container of its own"));
        }
        let (engine, found) = self.running(ticket).await?;
        if found.state.paused == still {
            return Ok(());
        }
        let done = if still {
            engine.within(FREEZE_TIMEOUT, "pause", engine.docker.pause_container(&found.id)).await
        } else {
            engine.within(FREEZE_TIMEOUT, "unpause", engine.docker.unpause_container(&found.id)).await
        };
        match done {
            // Somebody else may have been faster: what counts is the state.
            Err(failure) => match engine.container(&found.id).await {
                Ok(Some(found)) if found.state.paused == still => Ok(()),
                _ => Err(failure),
            },
            done => done,
        }
    }

    async fn is_frozen(&self, ticket: &Ticket) -> Result<bool> {
        Ok(self.running(ticket).await?.1.state.paused)
    }

    fn news(&self) -> Option<broadcast::Receiver<Frozen>> {
        Some(self.pause_events.subscribe())
    }
}

impl Containers {
    /// Waits for a holder's greeting, but not for long where its container is paused, as nothing in it can answer.
    pub(crate) async fn wait_for_greeting<T>(
        &self,
        ticket: &Ticket,
        find: impl Future<Output = T>,
        within: Duration,
    ) -> std::result::Result<T, tokio::time::error::Elapsed> {
        let still = async {
            tokio::time::sleep(HOLDER_FREEZE_TIMEOUT).await;
            if !self.is_frozen(ticket).await.unwrap_or(false) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            found = tokio::time::timeout(within, find) => found,
            // Report a timeout.
            () = still => tokio::time::timeout(Duration::ZERO, std::future::pending()).await,
        }
    }
}
