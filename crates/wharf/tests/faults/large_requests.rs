//! Requests as large as they may be, many at once: the daemon's memory has a limit, and everybody is answered.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::ground::Ground;

/// A little less than a request may have.
const REQUEST_LEN: usize = 31 << 20;

/// What the daemon may take more than before, in KiB: one such request as it came, what is made of it, and as much again for
/// what the allocator keeps.
const MAX_GROWTH_KIB: u64 = 160 << 10;

/// The most memory that a process ever had, in KiB.
fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Asks for a session with this, and says what was answered.
fn post(socket: &Path, body: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: wharf\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it hears");
    // It may refuse it before it has all.
    let _ = stream.write_all(body);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn eight_large_requests_at_once_take_no_more_than_one() {
    let ground = Ground::new();
    ground.start("live", &[], &["cat"]);
    let daemon = ground.locked_by().expect("a daemon");
    let socket = ground.state().join("daemon.sock");
    // A long text, and as many short ones as there is room for; neither is a whole request.
    let text = format!(r#"{{"spec":{{"prompt":"{}"}}}}"#, "x".repeat(REQUEST_LEN));
    let many = format!(r#"{{"spec":{{"argv":[{}""]}}}}"#, r#""","#.repeat(REQUEST_LEN / 3));
    for (body, said) in [(text, "cannot read the request"), (many, "too many values")] {
        let before = peak(daemon);
        let answers: Vec<String> = thread::scope(|scope| {
            let askers: Vec<_> = (0..8).map(|_| scope.spawn(|| post(&socket, body.as_bytes()))).collect();
            // Whoever else asks is answered meanwhile.
            assert!(ground.ok(&["ls"]).contains("live"));
            askers.into_iter().map(|asker| asker.join().expect("no panic")).collect()
        });
        for answer in answers {
            assert!(answer.contains(said), "{answer}");
        }
        // The kernel adds up each processor's own count now and then, so a peak may seem to sink by a little.
        let grown = peak(daemon).saturating_sub(before);
        assert!(grown < MAX_GROWTH_KIB, "{said}: the daemon took {grown} KiB more");
    }
}
