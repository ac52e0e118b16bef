//! Signals, to the command or to its whole tree.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::{Code, Reason};

use crate::conformance::running::absent;
use crate::conformance::{ANSWER_TIMEOUT, Place, within};

/// A trapped signal reaches the command, which decides.
pub async fn trapped_signals_arrive(place: Arc<Place>) {
    if !place.can().signal {
        return absent("a signal", place.sleeper().await.connection.signal(2, false).await);
    }
    let script = "trap 'echo got usr1' USR1; trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let session = place.start(place.shell(script)).await;
    let mut transcript = session.transcript(0).await;
    transcript.until("ready").await;
    within(ANSWER_TIMEOUT, "a signal", session.connection.signal(10, false)).await.expect("a signal");
    transcript.until("got usr1").await;
    within(ANSWER_TIMEOUT, "a signal", session.connection.signal(2, false)).await.expect("a signal");
    let record = session.ended().await;
    assert_eq!((record.code, record.reason), (Some(5), Reason::Exited));
}

/// A signal goes to the command alone, or to the tree when that is asked for.
pub async fn trees_are_signalled_on_demand(place: Arc<Place>) {
    if !place.can().signal {
        return absent("a signal", place.sleeper().await.connection.signal(2, true).await);
    }
    let script = "sh -c 'trap \"echo child\" USR1; echo up; while :; do sleep 0.05; done' & \
        trap 'echo parent' USR1; echo up; while :; do sleep 0.05; done";
    let session = place.start(place.shell(script)).await;
    let mut transcript = session.transcript(0).await;
    transcript.until("up").await;
    transcript.until("up").await;
    for _ in 0..3 {
        session.connection.signal(10, false).await.expect("a signal");
        transcript.until("parent").await;
    }
    let seen = String::from_utf8_lossy(&transcript.seen).into_owned();
    assert!(!seen.contains("child"), "the child was signalled too: {seen}");
    session.connection.signal(10, true).await.expect("a signal");
    transcript.until("child").await;
}

/// A signal that ends the command is the end of the session, by itself.
pub async fn deadly_signals_end_it(place: Arc<Place>) {
    let session = place.sleeper().await;
    if !place.can().signal {
        return absent("a signal", session.connection.signal(15, false).await);
    }
    session.connection.signal(15, false).await.expect("a signal");
    let record = session.ended().await;
    assert_eq!((record.code, record.signal, record.reason), (None, Some(15), Reason::Exited));
    let refused = session.connection.signal(15, false).await;
    assert_eq!(refused.expect_err("it has ended").code, Code::Ended);
}

/// What is no signal is refused, and hurts nobody.
pub async fn what_is_no_signal(place: Arc<Place>) {
    let session = place.sleeper().await;
    if !place.can().signal {
        return absent("a signal", session.connection.signal(-1, false).await);
    }
    for signal in [-1, 65, 999, i32::MIN] {
        let refused = session.connection.signal(signal, true).await;
        assert_eq!(refused.expect_err("it is no signal").code, Code::Invalid, "{signal}");
    }
    let record = session.stop(Duration::ZERO).await;
    assert_eq!(record.signal, Some(9));
}
