//! What is typed arrives: whole, in order, once, and acknowledged.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::{Code, Size};

use crate::conformance::running::absent;
use crate::conformance::{ANSWER_TIMEOUT, CASE_TIMEOUT, Place, cksum, within};

/// Typed and printed.
pub async fn echo_round_trip(place: Arc<Place>) {
    let (session, ready) = place.echo().await;
    let mut transcript = session.transcript(ready.len() as u64).await;
    for text in ["a", "two words", "größe 🚢", "$(id)", "-n"] {
        session.type_in(text).await;
        transcript.until(text).await;
    }
    session.type_in(b"").await;
    assert!(session.connection.status().borrow().last_input.is_some());
}

/// What is typed before the command reads is kept for it.
pub async fn early_input_is_kept(place: Arc<Place>) {
    let session = place.start(place.shell("read -r line; echo \"<$line>\"")).await;
    session.type_in(b"early\n").await;
    assert_eq!(session.ended().await.code, Some(0));
    assert!(session.lines().await.ends_with("<early>\n"), "{:?}", session.lines().await);
}

/// A mebibyte of any bytes, in one write.
pub async fn a_mebibyte_arrives_whole(place: Arc<Place>) {
    let session = place.start(place.raw("printf ready; head -c 1048576 | cksum")).await;
    session.transcript(0).await.until(b"ready").await;
    // Every byte value, and no period that a lost page could hide in.
    let bytes: Vec<u8> = (0_u32..1 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    session.type_in(&bytes).await;
    assert_eq!(session.ended().await.code, Some(0));
    assert_eq!(session.lines().await, format!("ready{}\n", cksum(&bytes)));
}

/// A command that does not read: the write ends in time and says how far it came, and nothing else waits for it.
pub async fn unread_input_blocks_nothing(place: Arc<Place>) {
    let session = place.start(place.raw("printf ready; exec sleep 600")).await;
    session.transcript(0).await.until(b"ready").await;
    let bytes = vec![b'x'; 1 << 20];
    let time = Duration::from_millis(300);
    let late = within(time + ANSWER_TIMEOUT, "a write", session.connection.write(&bytes, time)).await;
    let late = late.expect_err("nobody reads");
    assert_eq!(late.code, Code::Timeout, "{late:?}");
    assert!(late.message.bytes().any(|byte| byte.is_ascii_digit()), "{:?} says no number", late.message);

    // Now with a write under way.
    let connection = Arc::clone(&session.connection);
    let stuck = tokio::spawn(async move { connection.write(&vec![b'y'; 1 << 20], CASE_TIMEOUT).await });
    tokio::task::yield_now().await;
    if place.can().resize && place.tty() {
        let resize = session.connection.resize(Size { cols: 100, rows: 30 });
        within(ANSWER_TIMEOUT, "a resize", resize).await.expect("a resize");
    }
    if place.can().signal {
        within(ANSWER_TIMEOUT, "a signal", session.connection.signal(18, false)).await.expect("a signal");
    }
    if place.can().pending_input {
        within(ANSWER_TIMEOUT, "pending", session.connection.pending()).await.expect("pending");
    }
    session.stop(Duration::from_secs(5)).await;
    let stuck = within(ANSWER_TIMEOUT, "the stuck write", stuck)
        .await
        .expect("no panic")
        .expect_err("it cannot go in");
    assert_eq!(stuck.code, Code::Ended, "{stuck:?}");
}

/// Writes of several at once: each in one piece.
pub async fn writes_do_not_mix(place: Arc<Place>) {
    const WRITE_LEN: usize = 20_000;
    let (session, ready) = place.echo().await;
    let writers: Vec<_> = (b'a'..=b'h')
        .map(|letter| {
            let connection = Arc::clone(&session.connection);
            tokio::spawn(async move { connection.write(&vec![letter; WRITE_LEN], CASE_TIMEOUT).await })
        })
        .collect();
    let mut transcript = session.transcript(ready.len() as u64).await;
    let all = async { while transcript.seen.len() < 8 * WRITE_LEN && transcript.more().await {} };
    within(CASE_TIMEOUT, "eight writes", all).await;
    for writer in writers {
        writer.await.expect("no panic").expect("it goes in");
    }
    let pieces: Vec<&[u8]> = transcript.seen.chunk_by(|a, b| a == b).collect();
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
    assert_eq!(lengths, [WRITE_LEN; 8]);
}

/// Whoever is gone is not typed at.
pub async fn an_ended_session_takes_no_input(place: Arc<Place>) {
    let session = place.start_simple(place.tools().exit(0)).await;
    session.ended().await;
    let refused = within(ANSWER_TIMEOUT, "a write", session.connection.write(b"x", CASE_TIMEOUT)).await;
    assert_eq!(refused.expect_err("it has ended").code, Code::Ended);
}

/// The end of input ends what reads to the end, after all that was written before.
pub async fn close_ends_the_input(place: Arc<Place>) {
    if place.tty() {
        let session = place.sleeper().await;
        return absent("the end of a terminal's input", session.connection.close_input().await);
    }
    let session = place.start(place.shell("cksum; exit 4")).await;
    let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
    session.type_in(&bytes).await;
    within(ANSWER_TIMEOUT, "a close", session.connection.close_input()).await.expect("a close");
    assert_eq!(session.ended().await.code, Some(4));
    assert_eq!(session.lines().await, format!("{}\n", cksum(&bytes)));
}
