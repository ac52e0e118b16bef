//! Removes containers of starts that failed while their engine was out of reach, once it is back.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wharf_backend::Result;
use wharf_model::SessionId;

use crate::containers::Containers;
use crate::engine::Engine;
use crate::engine::endpoint::Endpoint;
use crate::owner::container_name;

/// The first and the longest wait before an engine that is out of reach is asked again.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long an engine that stays away is asked. `gc` or the next daemon finds what it has then.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(6 * 3600);
/// How often a missing container is looked for: the engine may still be creating it.
const MAX_CHECKS: u32 = 4;
/// How many failed starts are remembered. `gc` or the next daemon finds the containers of further ones.
const MAX_FAILED_STARTS: usize = 1024;

impl Containers {
    /// Removes the container of a failed start, if it exists and is ours. Returns whether it did.
    pub(crate) async fn take_back(&self, engine: &Engine, session: &SessionId) -> Result<bool> {
        let Some(found) = engine.container(&container_name(session)).await? else { return Ok(false) };
        let ours = self.owner()?.owns(&found, session);
        if ours {
            // By id: a new start of the session creates a container of the same name.
            engine.remove(&found.id).await?;
        }
        Ok(ours)
    }

    /// Remembers that a failed start may have left its container, and removes it once the engine answers.
    pub(crate) fn remove_when_reachable(self: &Arc<Self>, endpoint: &Endpoint, session: &SessionId) {
        {
            let mut failed = self.failed_starts.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.len() >= MAX_FAILED_STARTS || !failed.insert(session.clone()) {
                return;
            }
        }
        let (containers, endpoint, session) = (Arc::downgrade(self), endpoint.clone(), session.clone());
        self.tasks.spawn(async move {
            let (mut wait, mut looks, until) = (RETRY_BACKOFF.0, 0, Instant::now() + CLEANUP_TIMEOUT);
            while looks < MAX_CHECKS && Instant::now() < until {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_BACKOFF.1);
                let Some(containers) = containers.upgrade() else { return };
                if !containers.is_failed_start(&session) {
                    // A new start of the session took care of it.
                    return;
                }
                let engine = match containers.engine_at(&endpoint).await {
                    Ok(engine) => engine,
                    Err(failure) => {
                        tracing::debug!(%session, %failure, "the container of a failed start is left for now");
                        continue;
                    }
                };
                match containers.remove_failed_start(&engine, &session).await {
                    Ok(true) => break,
                    // Not there, but the engine may still be creating it.
                    Ok(false) => looks += 1,
                    Err(failure) => {
                        tracing::debug!(%session, %failure, "the container of a failed start is left for now");
                    }
                }
            }
            if let Some(containers) = containers.upgrade() {
                containers.forget_failed_start(&session);
            }
        });
    }

    /// Removes the container unless the session was started again meanwhile.
    async fn remove_failed_start(&self, engine: &Engine, session: &SessionId) -> Result<bool> {
        let Some(found) = engine.container(&container_name(session)).await? else { return Ok(false) };
        // Check after the inspection: a new start says so before it creates a container, so what was found is the old
        // one.
        if !self.owner()?.owns(&found, session) || !self.is_failed_start(session) {
            return Ok(true);
        }
        engine.remove(&found.id).await?;
        tracing::info!(%session, "the container of a failed start is gone");
        Ok(true)
    }

    fn is_failed_start(&self, session: &SessionId) -> bool {
        self.failed_starts.lock().unwrap_or_else(PoisonError::into_inner).contains(session)
    }

    /// Forgets a failed start: a new start of the session takes care of its container.
    pub(crate) fn forget_failed_start(&self, session: &SessionId) {
        self.failed_starts.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }
}
