//! Finds containers that outlived their sessions, as where no daemon ran to remove them. Keeps what is in doubt.

use std::path::Path;

use wharf_backend::Result;
use wharf_model::SessionId;

use crate::engine::Engine;
use crate::engine::inspect::{Listed, ListedState};
use crate::owner::{Owner, container_name, stays};
use crate::session_dirs::SessionDirs;

/// A container whose session is over or unknown.
pub(crate) struct OrphanedContainer {
    pub(crate) session: SessionId,
    pub(crate) container: String,
    pub(crate) what: Verdict,
}

/// What is known about an orphaned container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its session is over, and it does not run.
    Ended,
    /// Its session is unknown, and it does not run.
    Unknown,
    /// It runs, and its session is unknown: the directory may only be out of sight. It is kept.
    Doubtful,
}

impl Verdict {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Ended => "its session is over",
            Self::Unknown => "nobody knows its session",
            Self::Doubtful => "it runs, and nobody here knows its session",
        }
    }
}

/// Finds containers that were made here for sessions that are over or unknown.
pub(crate) async fn find(engine: &Engine, owner: &Owner, sessions: &Path) -> Result<Vec<OrphanedContainer>> {
    let listed = engine.containers(&owner.selector()).await?;
    let of = |container: Listed| {
        let session = owner.session(container.labels())?;
        // An image that somebody committed from a session's container has its labels, and so have containers of that
        // image.
        if !container.is_called(&container_name(&session)) {
            return None;
        }
        let what = judge(&container, &session, sessions)?;
        Some(OrphanedContainer { session, container: container.id, what })
    };
    Ok(listed.into_iter().filter_map(of).collect())
}

fn judge(container: &Listed, session: &SessionId, sessions: &Path) -> Option<Verdict> {
    let home = sessions.join(session.as_str());
    let (known, over) = (home.exists(), container.state == ListedState::Over);
    if !sessions.exists() || (known && stays(container.labels())) {
        return None;
    }
    match (known, over) {
        (false, false) => Some(Verdict::Doubtful),
        (false, true) => Some(Verdict::Unknown),
        // A directory without an exit record may be a start under way.
        (true, true) if SessionDirs::of(&home).has_exit_record() => Some(Verdict::Ended),
        (true, _) => None,
    }
}

/// Removes the containers that are beyond doubt orphaned. Logs those that run, and keeps them.
pub(crate) async fn remove_all(engine: &Engine, owner: &Owner, sessions: &Path) {
    let orphans = match find(engine, owner, sessions).await {
        Ok(orphans) => orphans,
        Err(failure) => {
            tracing::debug!(%failure, "containers without a session cannot be looked for");
            return;
        }
    };
    for OrphanedContainer { session, container, what } in orphans {
        if what == Verdict::Doubtful {
            tracing::warn!(%session, container, "a container runs whose session is not known");
        } else if let Err(failure) = engine.remove(&container).await {
            tracing::warn!(%session, %failure, "a container without a session is left");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_word_is_kept_until_there_is_a_record_that_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let session: SessionId = "0123456789abcdef".parse().unwrap();
        let home = dir.path().join(session.as_str());
        let judged = |state: &str| {
            let listed = serde_json::json!({ "Id": "a", "State": state, "Labels": {}, "Names": null });
            judge(&serde_json::from_value(listed).unwrap(), &session, dir.path())
        };
        assert_eq!((judged("exited"), judged("running")), (Some(Verdict::Unknown), Some(Verdict::Doubtful)));
        SessionDirs::of(&home).create(1, false).unwrap();
        assert_eq!(judged("exited"), None, "a start that is under way");
        let record = home.join("room/exit.json");
        std::fs::File::create(&record).unwrap().set_len(6 << 30).unwrap();
        assert_eq!(judged("exited"), None, "a file that the session put there is no record");
        std::fs::write(&record, r#"{"code":0,"reason":"exited"}"#).unwrap();
        assert_eq!((judged("exited"), judged("running")), (Some(Verdict::Ended), None));
    }
}
