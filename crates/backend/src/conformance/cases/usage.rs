//! What a session uses, and what it may use.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::{Code, Limits, Stats};

use crate::conformance::running::absent;
use crate::conformance::{CASE_TIMEOUT, Place, Running, until, within};

/// Processes, memory, processor time and the log are counted.
pub async fn stats_are_plausible(place: Arc<Place>) {
    if !place.can().stats {
        return absent("statistics", place.sleeper().await.connection.stats().await);
    }
    let script = "sleep 600 & sleep 600 & printf 12345; i=0; while :; do i=$((i + 1)); done";
    let session = place.start(place.shell(script)).await;
    until("two children and some work", async || {
        let stats = stats(&session).await;
        stats.processes == 3 && stats.cpu.0 >= 50 && stats.log_end.0 == 5
    })
    .await;
    let stats = stats(&session).await;
    assert!((4096..1 << 30).contains(&stats.memory), "{stats:?}");
    assert_eq!(stats.log_start.0, 0);
    assert!(stats.last_output.is_some_and(|time| time >= session.ticket.created), "{stats:?}");
    assert_eq!(stats.last_input, None);
    session.type_in("x").await;
    let typed = self::stats(&session).await.last_input;
    assert!(typed.is_some_and(|time| time >= session.ticket.created), "{typed:?}");
}

/// A limit is enforced, or refused before anything runs.
pub async fn a_limit_on_processes(place: Arc<Place>) {
    let mut launch = place.launch(place.tools().sleeper().unwrap_or_default());
    if place.can().limits {
        // dash ends when a fork fails, so each attempt has a shell of its own.
        launch = place.shell("i=0; while [ $i -lt 60 ]; do (sleep 600 &) 2>/dev/null; i=$((i + 1)); done; printf done; exec sleep 600");
    }
    launch.spec.limits = Limits { pids: Some(20), ..Limits::default() };
    need_limits(&place, &launch).await;
    let session = place.start(launch).await;
    // The shell may end at the limit or go on; either way there are never more.
    until("the limit is reached", async || {
        let ended = session.connection.status().borrow().exit.is_some();
        let Ok(stats) = session.connection.stats().await else { return ended };
        assert!(stats.processes <= 20, "{stats:?}");
        ended || stats.processes >= 15
    })
    .await;
}

/// A session that takes more memory than it may is ended, and its record says why.
pub async fn a_limit_on_memory(place: Arc<Place>) {
    let mut launch = place.launch(place.tools().sleeper().unwrap_or_default());
    if place.can().limits {
        launch = place.shell("exec tail /dev/zero");
    }
    launch.spec.limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    need_limits(&place, &launch).await;
    let session = place.start(launch).await;
    let record =
        within(Duration::from_secs(60), "the end", session.connection.wait()).await.expect("the end");
    assert_eq!((record.signal, record.oom), (Some(9), true), "{record:?}");
}

/// A limit on processors slows a busy command down.
pub async fn a_limit_on_processors(place: Arc<Place>) {
    let mut launch = place.launch(place.tools().sleeper().unwrap_or_default());
    if place.can().limits {
        launch = place.shell("while :; do :; done");
    }
    launch.spec.limits = Limits { cpus: Some(0.1), ..Limits::default() };
    need_limits(&place, &launch).await;
    place.need(place.can().stats, "statistics to see it by");
    let session = place.start(launch).await;
    let before = tokio::time::Instant::now();
    until("some work", async || stats(&session).await.cpu.0 >= 200).await;
    assert!(before.elapsed() >= Duration::from_secs(1), "200 ms of work took {:?}", before.elapsed());
}

/// Gives the case up where limits are not claimed; this one must have been refused then.
async fn need_limits(place: &Place, launch: &crate::Launch) {
    if place.can().limits {
        return;
    }
    let failure = place.refuse(launch.clone()).await;
    assert_eq!(failure.code, Code::LimitRefused, "{failure:?}");
    assert!(failure.hint.is_some(), "a refusal says what to do: {failure:?}");
    place.need(false, "limits, and refused this one");
}

async fn stats(session: &Running) -> Stats {
    within(CASE_TIMEOUT, "statistics", session.connection.stats()).await.expect("statistics")
}
