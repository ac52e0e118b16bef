//! Whether this process may read a session's files by itself: what the daemon and the holders ask others, it asks itself.

use std::path::Path;

use wharf_holder::linux::callers::{Found, Sessions};
use wharf_holder::linux::origin::Traces;
use wharf_model::{Act, Caller, Failure, Home, SessionId, Whose, may};

/// The session that this process runs inside of.
pub(crate) fn own_session(home: &Home) -> Option<SessionId> {
    let sessions = Sessions::open(&home.sessions()).ok()?;
    let traces = Traces::of(std::process::id() as i32, None, |_, _| false)?;
    sessions.caller(&traces).session
}

/// Refuses what we may not do to the session in a directory, by the session that we are ourselves inside of.
pub(crate) fn to(home: &Home, act: Act, verb: &str, session: &Path, name: &str) -> Result<(), Failure> {
    let Ok(sessions) = Sessions::open(&home.sessions()) else { return Ok(()) };
    let own = std::process::id() as i32;
    let found = Traces::of(own, None, |_, _| false).map_or(Found::UNCLEAR, |traces| sessions.caller(&traces));
    if found.caller == Caller::Outside {
        return Ok(());
    }
    let target = session.file_name().and_then(|id| id.to_str()?.parse::<SessionId>().ok());
    let whose = target.map_or(Whose::Other, |target| sessions.whose(found.session.as_ref(), &target));
    may(found.caller, act, whose).map_err(|refused| refused.failure(format!("{verb} session {name:?}")))
}
