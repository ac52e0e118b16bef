//! The terminal's size.

use std::sync::Arc;

use wharf_model::{Code, Size};

use crate::conformance::running::absent;
use crate::conformance::{ANSWER_TIMEOUT, CASE_TIMEOUT, Place, within};

const WATCH: &str = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done";

/// The command sees its first size at once, and each change by a signal.
pub async fn sizes_reach_the_command(place: Arc<Place>) {
    if !place.can().resize {
        return absent("a resize", place.sleeper().await.connection.resize(Size::default()).await);
    }
    place.need(place.tools().stty, "stty");
    let mut launch = place.shell(WATCH);
    launch.spec.size = Size { cols: 132, rows: 43 };
    let session = place.start(launch).await;
    let mut transcript = session.transcript(0).await;
    transcript.until("43 132").await;
    for size in [Size { cols: 1, rows: 1 }, Size { cols: 80, rows: 24 }, Size { cols: 200, rows: 60 }] {
        within(ANSWER_TIMEOUT, "a resize", session.connection.resize(size)).await.expect("a resize");
        transcript.until(format!("{} {}", size.rows, size.cols)).await;
        let mut status = session.connection.status();
        within(CASE_TIMEOUT, "the status", status.wait_for(|status| status.size == size))
            .await
            .expect("a status");
    }
}

/// Sizes that break programs are made sane.
pub async fn sizes_are_made_sane(place: Arc<Place>) {
    if !place.can().resize {
        return absent("a resize", place.sleeper().await.connection.resize(Size::default()).await);
    }
    place.need(place.tools().stty, "stty");
    let mut launch = place.shell(WATCH);
    launch.spec.size = Size { cols: 0, rows: 0 };
    let session = place.start(launch).await;
    let mut transcript = session.transcript(0).await;
    transcript.until("1 1").await;
    session.connection.resize(Size { cols: 65_535, rows: 65_535 }).await.expect("a resize");
    transcript.until("4096 4096").await;
    session.connection.resize(Size { cols: 0, rows: 0 }).await.expect("a resize");
    transcript.until("1 1").await;
}

/// What is over, and what has no terminal, has no size.
pub async fn only_terminals_that_live(place: Arc<Place>) {
    let session = place.sleeper().await;
    if !place.tty() || !place.can().resize {
        return absent("a resize", session.connection.resize(Size::default()).await);
    }
    session.stop(std::time::Duration::ZERO).await;
    let refused = session.connection.resize(Size::default()).await;
    assert_eq!(refused.expect_err("it has ended").code, Code::Ended);
}
