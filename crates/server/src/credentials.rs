use wharf_engine::Engine;
use wharf_model::{Code, Failure, Home, SessionId, Ticket};

/// The session that a caller belongs to by its mark: for one whose pid says nothing, in a container for instance.
pub(crate) async fn session_of(engine: &Engine, session: &str, token: &str) -> Result<SessionId, Failure> {
    let wrong = || {
        Failure::new(Code::Forbidden, format!("this is not the mark of session {session:?}"))
            .hint("the session's processes have it as WHARF_TOKEN, and its id as WHARF_SESSION_ID")
    };
    let session = engine.find(session).await?;
    let path = engine.home().session(&session.id).join(Home::TICKET);
    let text = tokio::fs::read(&path).await.map_err(|_| wrong())?;
    let ticket: Ticket = serde_json::from_slice(&text).map_err(|_| wrong())?;
    let known = !ticket.token.is_empty() && same(ticket.token.as_bytes(), token.as_bytes());
    if known { Ok(session.id.clone()) } else { Err(wrong()) }
}

/// Compares in a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_the_same_or_not() {
        assert!(same(b"abc", b"abc") && same(b"", b""));
        assert!(!same(b"abc", b"abd") && !same(b"abc", b"ab") && !same(b"", b"a"));
    }
}
