//! Much output: every byte of it, whoever reads and whoever does not.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::Offset;

use crate::conformance::{CASE_TIMEOUT, Place, Transcript, within};
use crate::{Connection, OutputChunk};

const LINE: &[u8; 11] = b"0123456789\n";
const FLOOD_LEN: u64 = 50_000_000;

/// Fifty megabytes with a fast, a slow and a stalled reader.
pub async fn fifty_megabytes_are_exact(place: Arc<Place>) {
    let session = place.start(place.raw("yes 0123456789 | head -c 50000000; exit 8")).await;
    let mut stalled = session.transcript(0).await;
    assert!(within(CASE_TIMEOUT, "output", stalled.more()).await);
    let read = |pause: bool| {
        let connection = Arc::clone(&session.connection);
        tokio::spawn(async move { read_all(&*connection, pause).await })
    };
    let (fast, slow) = (read(false), read(true));
    let record = within(Duration::from_secs(60), "the end", session.connection.wait()).await;
    let record = record.expect("the end");
    assert_eq!((record.code, record.log_end), (Some(8), Offset(FLOOD_LEN)));
    assert_eq!(within(CASE_TIMEOUT, "a fast reader", fast).await.expect("no panic"), FLOOD_LEN);
    assert_eq!(within(CASE_TIMEOUT, "a slow reader", slow).await.expect("no panic"), FLOOD_LEN);
    assert!(within(CASE_TIMEOUT, "output", stalled.more()).await, "a stalled reader goes on where it was");
}

/// Fifty megabytes that nobody reads.
pub async fn nobody_reads(place: Arc<Place>) {
    let session = place.start(place.raw("yes 0123456789 | head -c 50000000")).await;
    let record =
        within(Duration::from_secs(60), "the end", session.connection.wait()).await.expect("the end");
    assert_eq!((record.code, record.log_end), (Some(0), Offset(FLOOD_LEN)));
    assert_eq!(read_all(&*session.connection, false).await, FLOOD_LEN);
}

/// Output is bytes: all of them, with no newline and no valid text.
pub async fn every_byte_value(place: Arc<Place>) {
    let script = "i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %03o $i)\"; i=$((i + 1)); done";
    let session = place.start(place.raw(script)).await;
    assert_eq!(session.ended().await.code, Some(0));
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(session.rest(0).await, all);
}

/// A log that has dropped its oldest bytes says exactly which.
pub async fn dropped_bytes_are_a_gap(place: Arc<Place>) {
    let mut launch = place.raw("yes 0123456789 | head -c 20000000");
    launch.spec.log_size = Some(1 << 20);
    let session = place.start(launch).await;
    let end =
        within(Duration::from_secs(60), "the end", session.connection.wait()).await.expect("the end").log_end;
    assert_eq!(end, Offset(20_000_000));
    let read = session.transcript(0).await.rest().await;
    let first = read.first.expect("something is kept");
    assert_eq!(read.gaps, [(Offset(0), first)]);
    assert_eq!(first + read.seen.len() as u64, end);
    assert!(read.seen.len() <= 2 << 20, "{} bytes are kept where 1 MiB was asked for", read.seen.len());
    assert!(read.seen.len() >= 1 << 19, "only {} bytes are kept", read.seen.len());
    check(first, &read.seen);
    let kept = session.transcript(first.0 + 5).await.rest().await;
    assert_eq!((kept.gaps, kept.first), (vec![], Some(first + 5)));
}

/// Reads everything and checks each byte without keeping any; returns how many there were.
async fn read_all(connection: &dyn Connection, pause: bool) -> u64 {
    let mut output = connection.output(Offset(0)).await.expect("output");
    let mut at = Offset(0);
    while let Some(chunk) = output.next().await.expect("output goes on") {
        let OutputChunk::Data { offset, bytes, .. } = chunk else { panic!("a gap at {at}: {chunk:?}") };
        assert_eq!(offset, at);
        check(at, &bytes);
        at = at + bytes.len() as u64;
        if pause && connection.status().borrow().exit.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    at.0
}

fn check(at: Offset, bytes: &[u8]) {
    let mut expected = LINE.iter().cycle().skip((at.0 % 11) as usize);
    let wrong = bytes.iter().position(|byte| Some(byte) != expected.next());
    assert_eq!(wrong.map(|wrong| at + wrong as u64), None, "a wrong byte");
}

/// One line of a megabyte, through a terminal that cooks its output.
pub async fn an_endless_line(place: Arc<Place>) {
    let session = place.start(place.shell("head -c 1048576 /dev/zero | tr '\\0' y")).await;
    assert_eq!(session.ended().await.log_end, Offset(1 << 20));
    let mut transcript = Transcript::of(&*session.connection, Offset((1 << 20) - 3)).await;
    transcript.until("yyy").await;
}
