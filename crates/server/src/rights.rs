use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_api::linux::Peer;
use wharf_engine::{Engine, Origin};
use wharf_model::{Code, Failure, Session, SessionId};

/// What a caller may end or change: everything, or the session alone that it runs in.
///
/// Agents call the command line themselves. One that ends "all sessions" must not end its neighbours.
pub(crate) enum Rights {
    /// Everything.
    All,
    /// This session alone.
    Only(SessionId),
    /// Nothing: it cannot be told from where the caller asks.
    Unknown,
}

/// How long a session may take from the start of its command until it is known here, and how often it is looked.
const STARTED: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(5);

impl Rights {
    pub(crate) async fn of(engine: &Engine, peer: Peer) -> Self {
        match origin(engine, peer).await {
            Origin::Session(id) if engine.controls_others(&id) => Self::All,
            Origin::Session(id) => Self::Only(id),
            Origin::Outside => Self::All,
            Origin::Unclear => Self::Unknown,
        }
    }

    /// Refuses unless every one of these sessions may be touched; then none is.
    pub(crate) fn over(&self, verb: &str, sessions: &[Arc<Session>]) -> Result<(), Failure> {
        let other = match self {
            Self::All => None,
            Self::Only(inside) => sessions.iter().find(|session| session.id != *inside),
            Self::Unknown => sessions.first(),
        };
        other.map_or(Ok(()), |other| Err(self.refused(&format!("{verb} session \"{}\"", other.name))))
    }

    /// Refuses what concerns the whole instance.
    pub(crate) fn over_all(&self, what: &str) -> Result<(), Failure> {
        if matches!(self, Self::All) { Ok(()) } else { Err(self.refused(what)) }
    }

    fn refused(&self, what: &str) -> Failure {
        let (why, hint) = if matches!(self, Self::Unknown) {
            (
                "it cannot be told which process asks",
                "ask from a process of this host that waits for the answer",
            )
        } else {
            (
                "a command from inside a session may touch that session alone",
                "start the session with --allow-control to allow it",
            )
        };
        Failure::new(Code::Forbidden, format!("cannot {what}: {why}")).hint(hint)
    }
}

/// Where a peer belongs. One that was just started is waited for; what is unclear then stays so.
pub(crate) async fn origin(engine: &Engine, peer: Peer) -> Origin {
    let until = Instant::now() + STARTED;
    loop {
        match engine.origin_of(peer.pid) {
            // Gone already, or not to be seen from here: it may have been inside one.
            Origin::Unclear if !Path::new(&format!("/proc/{}", peer.pid)).exists() => return Origin::Unclear,
            Origin::Unclear if Instant::now() < until => tokio::time::sleep(AGAIN).await,
            origin => return origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_be_told_may_change_nothing() {
        assert_eq!(Rights::Unknown.over_all("end the daemon").unwrap_err().code, Code::Forbidden);
        assert_eq!(Rights::Unknown.over("stop", &[]), Ok(()));
        assert_eq!(Rights::All.over_all("end the daemon"), Ok(()));
    }
}
