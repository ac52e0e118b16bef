//! Containers that outlived their sessions, as where nobody was there to take them away. What is in doubt is kept.

use std::path::Path;

use wharf_model::Home;

use crate::engine::Engine;
use crate::owner::Owner;

/// States in which nothing of a container runs, in the words of either engine.
const OVER: &[&str] = &["created", "configured", "exited", "stopped", "dead"];

/// Takes away what was made here for sessions that are over, or are no more. One that runs is left alone, and named where
/// its session is not known: the directory may only be out of sight. Returns how many were taken away.
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
        let home = sessions.join(session.as_str());
        let (known, over) = (home.exists(), OVER.contains(&container.state.as_str()));
        if !over && !known {
            tracing::warn!(%session, container = container.id, "a container runs whose session is not known");
        }
        // A directory without an exit record may be a start that is under way.
        if !over || !sessions.exists() || (known && !home.join(Home::EXIT).exists()) {
            continue;
        }
        match engine.remove(&container.id).await {
            Ok(()) => removed += 1,
            Err(failure) => tracing::warn!(%session, %failure, "a container without a session is left"),
        }
    }
    removed
}
