//! What a command inherits: its three descriptors, and signals at their defaults.

use std::ffi::OsString;
use std::sync::Arc;

use crate::conformance::{Place, Running, until};

/// No descriptor of ours, and none of another session.
pub async fn only_three_are_open(place: Arc<Place>) {
    place.need_host();
    // Each has others open beside it, and the last has the most to inherit.
    let sessions = [place.sleeper().await, place.sleeper().await, place.sleeper().await];
    for session in &sessions {
        let pid = asleep(session).await;
        let open = || {
            let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
            let mut fds: Vec<_> = fds.filter_map(|fd| Some(fd.ok()?.file_name())).collect();
            fds.sort();
            fds
        };
        // The loader of a dynamic program has its libraries open for a moment.
        let mut expected: Vec<OsString> = ["0", "1", "2"].map(OsString::from).into();
        expected.extend(place.tools().descriptors.iter().map(OsString::from));
        expected.sort();
        until("only the standard descriptors are open", async || open() == expected).await;
    }
}

/// Nothing is ignored and nothing is blocked, whatever our own processes do about signals.
pub async fn signals_are_at_their_defaults(place: Arc<Place>) {
    place.need_host();
    let session = place.sleeper().await;
    let pid = asleep(&session).await;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    for field in ["SigBlk:", "SigIgn:"] {
        let line = status.lines().find(|line| line.starts_with(field)).expect("the kernel says it");
        // The two that the C library keeps for itself, 32 and 33, may be anything.
        let mask = u64::from_str_radix(line[field.len()..].trim(), 16).expect("a mask") & !(3 << 31);
        assert_eq!(mask, 0, "{line}");
    }
}

/// Waits until the shell has become `sleep`, so that what the shell opens for itself is gone.
async fn asleep(session: &Running) -> i32 {
    let pid = session.connection.status().borrow().pid.expect("a session on this host has a pid");
    until("the shell becomes sleep", async || {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
    })
    .await;
    pid
}
