//! How much input the application has not read, and in which mode its terminal is.

use std::sync::Arc;

use crate::conformance::running::absent;
use crate::conformance::{Place, until};

/// Acknowledged input is in the terminal and unread, until it is read.
pub async fn unread_input_is_counted(place: Arc<Place>) {
    if !place.can().pending_input {
        return absent("pending input", place.sleeper().await.connection.pending().await);
    }
    place.need_host();
    let go = place.dir().join("go");
    let mut launch =
        place.raw("printf ready; until [ -e \"$GO\" ]; do sleep 0.05; done; head -c 10; exec sleep 600");
    launch.env.push(("GO".into(), go.as_path().into()));
    let session = place.start(launch).await;
    let mut transcript = session.transcript(0).await;
    transcript.until(b"ready").await;
    assert_eq!(session.connection.pending().await.expect("an answer").unread, 0);
    session.type_in(b"01234").await;
    let pending = session.connection.pending().await.expect("an answer");
    assert_eq!((pending.unread, pending.queued), (5, 0), "an acknowledged write is in the terminal");
    session.type_in(b"56789").await;
    // A terminal hands input on behind the writer's back; only "none" must never be said too early.
    until("ten bytes are unread", async || {
        let unread = session.connection.pending().await.expect("an answer").unread;
        assert!((5..=10).contains(&unread), "{unread}");
        unread == 10
    })
    .await;
    std::fs::write(go, b"").expect("a file can be written");
    transcript.until(b"0123456789").await;
    assert_eq!(session.connection.pending().await.expect("an answer").unread, 0);
}

/// The terminal's mode is the one that the application has set.
pub async fn the_mode_is_the_terminals(place: Arc<Place>) {
    if !place.can().pending_input {
        return absent("the terminal's mode", place.sleeper().await.connection.pending().await);
    }
    if !place.tty() {
        let pending = place.sleeper().await.connection.pending().await.expect("an answer");
        assert!(!pending.canonical && !pending.echo, "a pipe has no mode: {pending:?}");
        return;
    }
    place.need(place.tools().stty, "stty");
    let script = "echo first; read -r x; stty raw -echo; echo second; head -c 1 > /dev/null; stty sane; echo third; read -r x";
    let session = place.start(place.shell(script)).await;
    let mut transcript = session.transcript(0).await;
    for (word, cooked, answer) in [("first", true, "\n"), ("second", false, "x"), ("third", true, "\n")] {
        transcript.until(word).await;
        let pending = session.connection.pending().await.expect("an answer");
        assert_eq!((pending.canonical, pending.echo), (cooked, cooked), "{word}");
        session.type_in(answer).await;
    }
    assert_eq!(session.ended().await.code, Some(0));
}

/// Bytes that wait for room in the terminal are counted as queued.
pub async fn queued_input_is_counted(place: Arc<Place>) {
    if !place.can().pending_input {
        return absent("pending input", place.sleeper().await.connection.pending().await);
    }
    let session = place.start(place.raw("printf ready; exec sleep 600")).await;
    session.transcript(0).await.until(b"ready").await;
    let connection = Arc::clone(&session.connection);
    let total = 1_u64 << 20;
    let stuck = tokio::spawn(async move {
        connection.write(&vec![b'x'; total as usize], crate::conformance::CASE_TIMEOUT).await
    });
    until("input is queued", async || {
        let pending = session.connection.pending().await.expect("an answer");
        assert!(pending.unread + pending.queued <= total, "{pending:?}");
        pending.queued > 0 && pending.unread > 0
    })
    .await;
    session.stop(std::time::Duration::ZERO).await;
    stuck.await.expect("no panic").expect_err("it cannot go in");
}
