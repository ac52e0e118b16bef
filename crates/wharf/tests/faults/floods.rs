//! Sessions that tell more than anybody can hear.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ground::Ground;

/// The most memory that a process had, in KiB.
fn peak(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// A connection that tells for a session.
fn teller(ground: &Ground, name: &str) -> UnixStream {
    let session = ground.show(name);
    let ticket = fs::read(format!("{}/ticket.json", session["path"].as_str().unwrap())).unwrap();
    let ticket: Value = serde_json::from_slice(&ticket).unwrap();
    let mut stream = UnixStream::connect(ground.state().join("events.sock")).unwrap();
    let hello = json!({ "v": 1, "session": ticket["id"], "token": ticket["token"] });
    stream.write_all(format!("{hello}\n").as_bytes()).unwrap();
    stream
}

#[test]
fn long_lines_of_nothing_but_lists_cost_no_memory_and_no_time_of_others() {
    let ground = Ground::new();
    ground.start("evil", &[], &["cat"]);
    ground.start("good", &[], &["cat"]);
    let daemon = ground.daemon_pid().unwrap();
    let before = peak(daemon);
    let streams: Vec<UnixStream> = (0..6).map(|_| teller(&ground, "evil")).collect();
    let floods: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            std::thread::spawn(move || {
                let lists = "[],".repeat((16 << 20) / 3 - 20);
                let line = format!("{{\"kind\":\"x\",\"data\":[{lists}[]]}}\n");
                // Who sends too much may be cut off.
                stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(line.as_bytes()))
            })
        })
        .collect();
    while floods.iter().any(|flood| !flood.is_finished()) {
        let begun = Instant::now();
        ground.ok(&["ls"]);
        assert!(begun.elapsed() < Duration::from_secs(5), "ls took {:?}", begun.elapsed());
    }
    for flood in floods {
        let _ = flood.join().unwrap();
    }
    // Another's events are heard.
    let mut other = teller(&ground, "good");
    other.write_all(b"{\"kind\":\"heard\"}\n").unwrap();
    let heard = || ground.ok(&["events", "good", "--json"]).contains("heard");
    assert!(crate::support::until(heard), "it is not heard");
    let after = peak(daemon);
    assert!(after < before + (150 << 10), "from {before} to {after} KiB");
}
