//! From start to exit record.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use wharf_model::{ExitRecord, Home, Reason, Ticket};

use crate::conformance::{CASE_TIMEOUT, Place, within};

/// The ticket and the log are there before the command runs, and the ticket says the truth. Where the session is kept
/// from the host it does not see them: what stands there decides what runs on the host.
pub async fn the_ticket_is_there_first(place: Arc<Place>) {
    place.need_host();
    let script = "if test -s \"$HOME_OF_CASE/ticket.json\" && test -d \"$HOME_OF_CASE/log\"; then echo there; else echo not; fi";
    let mut launch = place.shell(script);
    launch.env.push(("HOME_OF_CASE".into(), launch.home.as_path().into()));
    let asked = launch.clone();
    let session = place.start(launch).await;
    let path = asked.home.join(Home::TICKET);
    let written: Ticket = serde_json::from_slice(&std::fs::read(&path).expect("a ticket")).expect("JSON");
    assert_eq!(session.ended().await.code, Some(0));
    let visible = place.tools().state && !place.can().isolation;
    let expected = if visible { "there\n" } else { "not\n" };
    assert_eq!(session.lines().await, expected);
    assert_eq!(written, session.ticket);
    assert_eq!((&written.id, &written.name, written.run), (&asked.id, &asked.name, asked.run));
    assert_eq!((&written.token, written.created), (&asked.token, asked.created));
    assert_eq!((written.dir.as_path(), &*written.backend), (&*asked.home, place.backend().name()));
    let mode = |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&asked.home)), (0o600, 0o700), "a ticket holds secrets");
}

/// A session lives until it is told to end, and everyone who asks is told the same.
pub async fn a_session_lives_and_ends(place: Arc<Place>) {
    let session = place.sleeper().await;
    let mut status = session.connection.status();
    {
        let now = status.borrow_and_update();
        assert!(now.exit.is_none() && !now.broken, "{now:?}");
        assert_eq!(now.pid, session.ticket.command.as_ref().map(|command| command.pid));
    }
    let waits: Vec<_> = (0..8)
        .map(|_| {
            let connection = Arc::clone(&session.connection);
            tokio::spawn(async move { connection.wait().await })
        })
        .collect();
    let record = session.stop(Duration::from_secs(5)).await;
    assert_eq!((record.reason, record.by.as_deref()), (Reason::Stopped, Some("conformance")));
    for wait in waits {
        let told = within(CASE_TIMEOUT, "a wait", wait).await.expect("no panic").expect("the end is known");
        assert_eq!(told, record);
    }
    assert_eq!(session.ended().await, record, "a wait can be repeated");
    let told = within(CASE_TIMEOUT, "the status", status.wait_for(|status| status.exit.is_some())).await;
    assert_eq!(told.expect("the status is kept").exit.as_ref(), Some(&record));
    if place.tools().host {
        let written = std::fs::read(session.ticket.dir.as_path().join(Home::EXIT)).expect("an exit record");
        let written: ExitRecord = serde_json::from_slice(&written).expect("JSON");
        assert_eq!(written, record);
    }
}

/// A second run continues the log of the first, and the end of the first is not taken for its own.
pub async fn a_second_run_continues_the_log(place: Arc<Place>) {
    let Some(argv) = place.tools().print("one") else { return place.need(false, "a shell") };
    let first = place.launch(argv);
    let mut second = first.clone();
    let first = place.start(first).await;
    let log_end = first.ended().await.log_end;
    second.run = 2;
    second.argv = place.tools().sleeper().expect("as the first");
    let second = place.start(second).await;
    assert_eq!(second.ticket.run, 2);
    assert!(second.connection.status().borrow().exit.is_none(), "it has just begun");
    let mut transcript = second.transcript(0).await;
    transcript.until(b"one").await;
    let record = second.stop(Duration::ZERO).await;
    assert!(record.log_end >= log_end, "the log went back from {log_end} to {}", record.log_end);
    assert_eq!((record.reason, record.signal), (Reason::Killed, Some(9)));
}
