use std::sync::Arc;

use wharf_api::linux::Peer;
use wharf_engine::Engine;
use wharf_model::{Code, Failure, Session, SessionId};

/// What a caller may end or change: everything, or the session alone that it runs in.
///
/// Agents call the command line themselves. One that ends "all sessions" must not end its neighbours.
pub(crate) struct Rights {
    inside: Option<SessionId>,
}

impl Rights {
    pub(crate) fn of(engine: &Engine, peer: Peer) -> Self {
        let inside = engine.session_of_pid(peer.pid).filter(|id| !engine.controls_others(id));
        Self { inside }
    }

    /// Refuses unless every one of these sessions may be touched; then none is.
    pub(crate) fn over(&self, verb: &str, sessions: &[Arc<Session>]) -> Result<(), Failure> {
        let Some(inside) = &self.inside else { return Ok(()) };
        match sessions.iter().find(|session| session.id != *inside) {
            Some(other) => Err(refused(&format!("{verb} session \"{}\"", other.name))),
            None => Ok(()),
        }
    }

    /// Refuses what concerns the whole instance.
    pub(crate) fn over_all(&self, what: &str) -> Result<(), Failure> {
        if self.inside.is_some() { Err(refused(what)) } else { Ok(()) }
    }
}

fn refused(what: &str) -> Failure {
    Failure::new(
        Code::Forbidden,
        format!("cannot {what}: a command from inside a session may touch that session alone"),
    )
    .hint("start the session with --control-others to allow it")
}
