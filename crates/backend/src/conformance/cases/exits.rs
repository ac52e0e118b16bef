//! How a command ended, exactly, with its output whole.

use std::sync::Arc;
use std::time::SystemTime;

use wharf_model::{Home, Millis, Reason};

use crate::conformance::{Place, Running};

/// Codes are kept.
pub async fn codes_are_exact(place: Arc<Place>) {
    for code in [0, 1, 3, 126, 127, 255] {
        let session = place.start_simple(place.tools().exit(code)).await;
        let record = session.ended().await;
        assert_eq!((record.code, record.signal), (Some(code), None));
        assert_eq!((record.reason, &record.by, record.oom), (Reason::Exited, &None, false));
    }
}

/// A signal is not a code.
pub async fn signals_are_exact(place: Arc<Place>) {
    for signal in [9, 15, 1, 6] {
        let session = place.start(place.script("kill -$1 $$; sleep 60", [signal.to_string()])).await;
        let record = session.ended().await;
        assert_eq!((record.code, record.signal), (None, Some(signal)));
        assert_eq!((record.reason, record.shell_code()), (Reason::Exited, 128 + signal));
    }
}

/// A command that exits at once has printed everything: reaping comes after draining.
pub async fn fast_commands_are_whole(place: Arc<Place>) {
    for i in 0..place.tools().starts {
        let line = format!("line {i} of a command that ends at once");
        let session = place.start_simple(place.tools().print(&line)).await;
        let record = session.ended().await;
        assert_eq!(record.code, Some(0));
        assert_eq!(session.lines().await, format!("{line}\n"));
        check_log_end(&place, &session).await;
    }
}

/// A megabyte printed just before the end is whole.
pub async fn a_megabyte_before_the_end_is_whole(place: Arc<Place>) {
    let session = place.start(place.raw("head -c 1048576 /dev/zero | tr '\\0' x; exit 9")).await;
    let record = session.ended().await;
    assert_eq!((record.code, record.log_end.0), (Some(9), 1 << 20));
    let output = session.rest(0).await;
    assert_eq!(output.len(), 1 << 20);
    assert!(output.iter().all(|byte| *byte == b'x'));
    check_log_end(&place, &session).await;
}

/// Start and end are moments between which the command ran.
pub async fn times_are_sane(place: Arc<Place>) {
    let before = Millis::from(SystemTime::now());
    let session = place.start_simple(place.tools().exit(0)).await;
    let record = session.ended().await;
    let after = Millis::from(SystemTime::now());
    let times = [before, record.started, record.ended, after];
    // Clocks of a kernel and of a process may be a tick apart.
    assert!(
        times.is_sorted_by_key(|time| time.0 / 10) || times.windows(2).all(|w| w[0].0 <= w[1].0 + 20),
        "{times:?}"
    );
    assert!(session.ticket.started.0 <= record.started.0 + 20, "{:?} {record:?}", session.ticket.started);
}

/// The record's end of the log is the log's end.
async fn check_log_end(place: &Place, session: &Running) {
    let record = session.ended().await;
    assert_eq!(record.log_end.0, session.rest(0).await.len() as u64);
    if place.tools().host {
        let dir = session.ticket.dir.as_path().join(Home::LOG);
        let files = std::fs::read_dir(dir).expect("a log");
        let files = files.map(|file| file.expect("a file").path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        let size: u64 = logs.map(|path| path.metadata().expect("it is there").len()).sum();
        assert_eq!(record.log_end.0, size);
    }
}
