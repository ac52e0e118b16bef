//! Stop: politely, then not, always in time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_model::Reason;

use crate::conformance::{ANSWER_TIMEOUT, CASE_TIMEOUT, Place, none_carry, within};

/// A command that handles TERM ends in its own way, and its code is kept.
pub async fn a_polite_command_keeps_its_code(place: Arc<Place>) {
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let session = place.start(place.shell(script)).await;
    session.transcript(0).await.until("ready").await;
    let before = Instant::now();
    let record = session.stop(Duration::from_secs(10)).await;
    assert!(before.elapsed() < Duration::from_secs(5), "the grace was waited for: {:?}", before.elapsed());
    assert_eq!((record.code, record.signal), (Some(7), None));
    assert_eq!((record.reason, record.by.as_deref()), (Reason::Stopped, Some("conformance")));
    // The shell may say on its standard error what became of its child.
    assert!(session.lines().await.contains("bye\n"), "its last words are in the log");
}

/// A command that ignores TERM is killed after the grace, and not long after.
pub async fn a_stubborn_command_is_killed(place: Arc<Place>) {
    let session = place.start_simple(place.tools().stubborn()).await;
    session.transcript(0).await.until(place.tools().ready()).await;
    let (before, grace) = (Instant::now(), Duration::from_millis(500));
    let record = session.stop(grace).await;
    assert!(before.elapsed() >= grace, "it was killed after {:?}", before.elapsed());
    assert_eq!((record.code, record.signal, record.reason), (None, Some(9), Reason::Stopped));
}

/// No grace is no TERM.
pub async fn no_grace_kills_at_once(place: Arc<Place>) {
    let session =
        place.start(place.shell("trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done")).await;
    session.transcript(0).await.until("ready").await;
    let record = session.stop(Duration::ZERO).await;
    assert_eq!((record.signal, record.reason), (Some(9), Reason::Killed));
    assert!(!session.lines().await.contains("term"));
}

/// What has ended cannot be stopped, and says how it ended.
pub async fn an_ended_session_keeps_its_record(place: Arc<Place>) {
    let session = place.start_simple(place.tools().exit(3)).await;
    let record = session.ended().await;
    assert_eq!(session.stop(Duration::from_secs(1)).await, record);
    assert_eq!((record.code, record.reason), (Some(3), Reason::Exited));
}

/// Several stops at once end it once, and a shorter grace is not held up by a longer one.
pub async fn stops_agree(place: Arc<Place>) {
    let session = place.start_simple(place.tools().stubborn()).await;
    session.transcript(0).await.until(place.tools().ready()).await;
    let stops: Vec<_> = (0..4)
        .map(|_| {
            let connection = Arc::clone(&session.connection);
            let stop = crate::conformance::running::stop(Duration::from_secs(60));
            tokio::spawn(async move { connection.stop(stop).await })
        })
        .collect();
    tokio::task::yield_now().await;
    let record = session.stop(Duration::from_millis(100)).await;
    for stop in stops {
        let other = within(ANSWER_TIMEOUT, "the other stops", stop)
            .await
            .expect("no panic")
            .expect("a stop succeeds");
        assert_eq!(other, record);
    }
}

/// A stop does not wait behind input that nobody reads.
pub async fn a_stop_overtakes_input(place: Arc<Place>) {
    let session = place.start(place.raw("printf ready; exec sleep 600")).await;
    session.transcript(0).await.until("ready").await;
    let connection = Arc::clone(&session.connection);
    let stuck = tokio::spawn(async move { connection.write(&vec![b'x'; 1 << 20], CASE_TIMEOUT).await });
    tokio::task::yield_now().await;
    let before = Instant::now();
    let record = session.stop(Duration::from_secs(10)).await;
    assert!(before.elapsed() < ANSWER_TIMEOUT, "a stop took {:?}", before.elapsed());
    assert_eq!(record.signal, Some(15));
    within(ANSWER_TIMEOUT, "the stuck write", stuck).await.expect("no panic").expect_err("it cannot go in");
}

/// A descendant that keeps the terminal open holds up neither the end nor the output, and is ended.
pub async fn a_descendant_holds_up_nothing(place: Arc<Place>) {
    let script = "(trap '' HUP TERM; echo up; exec sleep 600) & \
        (setsid sh -c 'trap \"\" HUP; echo up; sleep 600' &); read -r go; echo last; exit 4";
    let session = place.start(place.shell(script)).await;
    let mut transcript = session.transcript(0).await;
    transcript.until("up").await;
    transcript.until("up").await;
    session.type_in("\n").await;
    let record = within(Duration::from_secs(5), "the end", session.connection.wait()).await.expect("the end");
    assert_eq!((record.code, record.reason), (Some(4), Reason::Exited));
    assert!(session.lines().await.ends_with("last\n"), "{}", session.lines().await);
    if place.can().tree_kill && place.tools().host {
        assert!(record.leftovers >= 2, "{record:?}");
        none_carry(&session.token);
    }
}
