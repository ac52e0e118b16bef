//! Containers of starts that failed while their engine was out of reach: taken away once it is there again.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wharf_backend::Result;
use wharf_model::SessionId;

use crate::containers::Containers;
use crate::engine::Engine;
use crate::engine::endpoint::Endpoint;
use crate::owner::container_name;

/// How soon an engine that is out of reach is asked again, at first and at most.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long an engine that stays away is asked. What it has then is found by `gc`, or by the next daemon.
const GIVE_UP_AFTER: Duration = Duration::from_secs(6 * 3600);
/// How many times it is looked whether a container that was asked for comes after all.
const MAX_CHECKS: u32 = 4;
/// How many containers are remembered. Further ones are found by `gc`, or by the next daemon.
const MAX_FAILED_STARTS: usize = 1024;

impl Containers {
    /// Takes the container of a start back that failed, where it is there and ours.
    pub(crate) async fn take_back(&self, engine: &Engine, session: &SessionId) -> Result<bool> {
        let Some(found) = engine.container(&container_name(session)).await? else { return Ok(false) };
        let ours = self.owner()?.owns(&found, session);
        if ours {
            // By its id: whoever starts the session again has a container of the same name.
            engine.remove(&found.id).await?;
        }
        Ok(ours)
    }

    /// Remembers that a failed start may have left its container, and has it taken away when its engine is back.
    pub(crate) fn remove_when_reachable(self: &Arc<Self>, endpoint: &Endpoint, session: &SessionId) {
        {
            let mut failed = self.failed_starts.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.len() >= MAX_FAILED_STARTS || !failed.insert(session.clone()) {
                return;
            }
        }
        let (containers, endpoint, session) = (Arc::downgrade(self), endpoint.clone(), session.clone());
        tokio::spawn(async move {
            let (mut wait, mut looks, until) = (RETRY_BACKOFF.0, 0, Instant::now() + GIVE_UP_AFTER);
            while looks < MAX_CHECKS && Instant::now() < until {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_BACKOFF.1);
                let Some(containers) = containers.upgrade() else { return };
                if !containers.is_failed_start(&session) {
                    // It was started again, which took care of it.
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
                    // It was not there. One that was asked for may still come.
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

    /// Takes it away, unless the session was started again meanwhile.
    async fn remove_failed_start(&self, engine: &Engine, session: &SessionId) -> Result<bool> {
        let Some(found) = engine.container(&container_name(session)).await? else { return Ok(false) };
        // Asked after the look: who starts it again says so first, so what was found is what was left.
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

    /// A start of the session takes care of what an earlier one left.
    pub(crate) fn forget_failed_start(&self, session: &SessionId) {
        self.failed_starts.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }
}
