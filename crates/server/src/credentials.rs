//! For which session somebody speaks.

use wharf_engine::Engine;
use wharf_holder::linux::callers::Found;
use wharf_model::{Caller, Code, Failure, SessionId};

/// The session that a caller speaks for: the one that it is part of. What it says itself must fit that: a session's mark
/// stands in its ticket, where every process of the user can read it.
///
/// The mark counts for those alone who are part of no session, and so may do everything to each: the user's own programs,
/// and this process, which hands on what it hears in a container's room. Of whom nothing can be told it proves nothing.
pub(crate) async fn speaker(
    engine: &Engine,
    Found { caller, session: part_of }: &Found,
    said: Option<(&str, &str)>,
) -> Result<SessionId, Failure> {
    match (part_of.as_ref(), said) {
        (Some(own), None) => Ok(own.clone()),
        (Some(own), Some((session, _))) => {
            if engine.find(session).await.is_ok_and(|session| session.id == *own) {
                return Ok(own.clone());
            }
            Err(Failure::new(Code::Forbidden, format!("the sender is not part of session {session:?}"))
                .hint("a session tells of itself alone"))
        }
        (None, Some((session, token))) if *caller == Caller::Outside => {
            let session = engine.find(session).await?;
            let known = engine.is_mark_of(&session.id, token);
            known.then(|| session.id.clone()).ok_or_else(|| {
                let message = format!("this is not the mark of session \"{}\"", session.name);
                Failure::new(Code::Forbidden, message)
                    .hint("the session's processes have it as WHARF_TOKEN, and its id as WHARF_SESSION_ID")
            })
        }
        (None, _) => Err(Failure::new(Code::Forbidden, "the sender is not part of a session")
            .hint("begin with {\"v\":1,\"session\":…,\"token\":…} of WHARF_SESSION_ID and WHARF_TOKEN")),
    }
}
