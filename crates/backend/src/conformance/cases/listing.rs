//! A list shows all that is ours, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::Ticket;

use crate::conformance::Place;
use crate::conformance::running::absent;

/// Live and ended sessions are listed with the tickets that their starts gave.
pub async fn ours_are_listed(place: Arc<Place>) {
    if !place.can().list {
        return absent("a list", place.backend().list().await);
    }
    assert_eq!(place.backend().list().await.expect("a list"), [], "nothing was started yet");
    let live = place.sleeper().await;
    let ended = place.start_simple(place.tools().exit(0)).await;
    ended.ended().await;
    let mut expected = [live.ticket.clone(), ended.ticket.clone()];
    expected.sort_by(|a, b| a.id.cmp(&b.id));
    for backend in [None, Some(place.reopen())] {
        let listed = backend.as_deref().unwrap_or(place.backend()).list().await.expect("a list");
        assert_eq!(sorted(listed), expected);
    }
}

/// What is over and cleared away is not listed any more.
pub async fn what_was_cleared_away_is_gone(place: Arc<Place>) {
    if !place.can().list {
        return absent("a list", place.backend().list().await);
    }
    let session = place.sleeper().await;
    let kept = place.sleeper().await;
    session.stop(Duration::ZERO).await;
    assert_eq!(place.backend().sweep(&session.ticket).await.expect("a sweep"), 0, "a stop leaves nothing");
    std::fs::remove_dir_all(session.ticket.dir.as_path()).expect("its directory is the caller's");
    assert_eq!(place.reopen().list().await.expect("a list"), std::slice::from_ref(&kept.ticket));
}

/// Names that begin alike are different names.
pub async fn names_that_begin_alike(place: Arc<Place>) {
    let Some(argv) = place.tools().sleeper() else { return place.need(false, "a shell") };
    let mut sessions = Vec::new();
    for name in ["a", "a-1", "a-10", "A", "a.1"] {
        let mut launch = place.launch(argv.clone());
        launch.name = name.parse().expect("a legal name");
        let session = place.start(launch).await;
        assert_eq!(session.ticket.name.as_str(), name);
        sessions.push(session);
    }
    while let Some(stopped) = (!sessions.is_empty()).then(|| sessions.remove(0)) {
        stopped.stop(Duration::ZERO).await;
        for other in &sessions {
            let status = other.connection.status();
            let (of, by) = (&other.ticket.name, &stopped.ticket.name);
            assert!(status.borrow().exit.is_none(), "{of} was ended with {by}");
        }
    }
}

fn sorted(mut tickets: Vec<Ticket>) -> Vec<Ticket> {
    tickets.sort_by(|a, b| a.id.cmp(&b.id));
    tickets
}
