//! Output by offset: the same bytes from anywhere, at any time.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::Offset;

use crate::conformance::running::absent;
use crate::conformance::{CASE_TIMEOUT, Place, Transcript, within};

/// From the beginning, the middle, the end and beyond it.
pub async fn any_offset_gives_the_rest(place: Arc<Place>) {
    let line = "0123456789".repeat(50);
    let session = place.start_simple(place.tools().print(&line)).await;
    session.ended().await;
    if !place.can().offsets {
        return absent("an offset", session.connection.output(Offset(1)).await);
    }
    let all = session.rest(0).await;
    assert!(all.starts_with(line.as_bytes()));
    let end = all.len() as u64;
    for from in [0, 1, 7, 250, end - 1, end] {
        let read = session.transcript(from).await.rest().await;
        assert_eq!(read.seen, all[from as usize..], "from {from}");
        assert_eq!(read.first, (from < end).then_some(Offset(from)));
        assert_eq!(read.gaps, []);
    }
    for beyond in [end + 1, u64::MAX] {
        let mut output = session.connection.output(Offset(beyond)).await.expect("an answer");
        let next = within(CASE_TIMEOUT, "the end of output", output.next()).await;
        assert_eq!(next.expect("no error"), None, "from {beyond}");
    }
}

/// Readers that came before, during and after see the same bytes.
pub async fn readers_agree(place: Arc<Place>) {
    let (session, _) = place.echo().await;
    let early = session.transcript(0).await;
    let mut watching = session.transcript(0).await;
    for i in 0..200 {
        session.type_in(format!("{i}, ")).await;
    }
    watching.until("100, ").await;
    let during = session.transcript(0).await;
    watching.until("199, ").await;
    session.stop(Duration::ZERO).await;
    let after = session.rest(0).await;
    assert_eq!(early.rest().await.seen, after);
    assert_eq!(during.rest().await.seen, after);
    assert_eq!(watching.rest().await.seen, after);
}

/// A reader that follows is woken by the end, also where nothing more is printed.
pub async fn the_end_wakes_readers(place: Arc<Place>) {
    let session = place.sleeper().await;
    let connection = Arc::clone(&session.connection);
    let reader = tokio::spawn(async move { Transcript::of(&*connection, Offset(0)).await.rest().await.seen });
    session.stop(Duration::ZERO).await;
    assert_eq!(within(CASE_TIMEOUT, "the end", reader).await.expect("no panic"), b"");
}

/// What is printed on standard error is kept apart by pipes, from any offset; a terminal has one stream.
pub async fn streams_are_told_apart(place: Arc<Place>) {
    let script = "for i in 1 2 3 4 5; do printf 'out%s.' $i; printf 'err%s.' $i >&2; done";
    let session = place.start(place.shell(script)).await;
    session.ended().await;
    let all = session.transcript(0).await.rest().await;
    assert_eq!(all.seen.len(), 50);
    if place.tty() {
        assert_eq!(all.seen, *b"out1.err1.out2.err2.out3.err3.out4.err4.out5.err5.");
        assert_eq!(all.errors, b"");
        return;
    }
    assert_eq!(all.errors.escape_ascii().to_string(), "err1.err2.err3.err4.err5.");
    if place.can().offsets {
        let half = session.transcript(25).await.rest().await;
        assert_eq!(half.seen, all.seen[25..]);
        assert!(all.errors.ends_with(&half.errors), "{}", half.errors.escape_ascii());
    }
}
