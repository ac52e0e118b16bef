//! Containers that outlived their sessions, as after a crash between two steps. What is in doubt is kept.

use std::path::Path;

use crate::engine::Engine;
use crate::owner::Owner;

/// States in which nothing of a container runs, in the words of either engine.
const OVER: &[&str] = &["created", "configured", "exited", "stopped", "dead"];

/// Takes away what was made here for sessions that are no more. One that runs is named, and left alone: its session's
/// directory may only be out of sight. Returns how many were taken away.
pub(crate) async fn clear(engine: &Engine, owner: &Owner, sessions: &Path) -> u32 {
    let listed = match engine.containers(&owner.selector()).await {
        Ok(listed) => listed,
        Err(failure) => {
            tracing::debug!(%failure, "containers without a session cannot be looked for");
            return 0;
        }
    };
    let mut removed = 0;
    for container in listed {
        let Some(session) = owner.session(&container.labels) else { continue };
        // A directory without a ticket may be a start that is under way.
        if !sessions.exists() || sessions.join(session.as_str()).exists() {
            continue;
        }
        if !OVER.contains(&container.state.as_str()) {
            tracing::warn!(%session, container = container.id, "a container runs whose session is not known");
            continue;
        }
        match engine.remove(&container.id).await {
            Ok(()) => removed += 1,
            Err(failure) => tracing::warn!(%session, %failure, "a container without a session is left"),
        }
    }
    removed
}
