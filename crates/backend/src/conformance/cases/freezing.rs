//! Sessions that stand still.

use std::sync::Arc;
use std::time::Duration;

use crate::conformance::{CASE_TIMEOUT, Place, until, within};

/// Nothing of it runs while it stands still; then it goes on where it was, and can be ended.
pub async fn it_stands_still_and_goes_on(place: Arc<Place>) {
    let Some(freezer) = place.backend().freezer() else {
        assert!(!place.can().pause, "a pause is claimed, and nothing can do it");
        return;
    };
    assert!(place.can().pause, "sessions can stand still, and that is not claimed");
    let script = "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.01; done";
    let session = place.start(place.shell(script)).await;
    let ticket = &session.ticket;
    let mut transcript = session.transcript(0).await;
    transcript.until("3").await;
    assert!(!freezer.is_frozen(ticket).await.expect("a look"), "it runs");
    within(CASE_TIMEOUT, "a pause", freezer.freeze(ticket, true)).await.expect("it stands still");
    freezer.freeze(ticket, true).await.expect("a second time changes nothing");
    assert!(freezer.is_frozen(ticket).await.expect("a look"), "it stands still");
    // What it had printed is read; what comes after would be of something that runs.
    while tokio::time::timeout(Duration::from_millis(150), transcript.more()).await.is_ok() {}
    let before = transcript.seen.len();
    let more = tokio::time::timeout(Duration::from_millis(300), transcript.more()).await;
    assert!(more.is_err(), "it goes on printing:\n{transcript}");
    within(CASE_TIMEOUT, "the next", freezer.freeze(ticket, false)).await.expect("it goes on");
    assert!(!freezer.is_frozen(ticket).await.expect("a look"), "it runs");
    until("it prints", async || transcript.more().await && transcript.seen.len() > before).await;
    session.stop(Duration::from_secs(1)).await;
}
