//! Messages while the daemon is killed at any point of their delivery.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Ran, Wharf, kill, until};

/// The program of the fake agents, which is built beside this one's.
fn fake_agent() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_wharf")).with_file_name("wharf-fake-agent")
}

#[test]
fn a_daemon_killed_at_any_point_of_a_delivery_doubles_nothing() {
    let wharf = Wharf::new();
    let profiles = wharf.home().join(".config/wharf/profiles");
    fs::create_dir_all(&profiles).expect("a directory");
    let profile = include_str!("../../../testing/src/fake/profile.toml");
    fs::write(profiles.join("fake.toml"), profile).expect("a profile");
    let (agent, record) = (fake_agent(), wharf.home().join("record"));
    assert!(agent.exists(), "{} is built by the workspace's tests", agent.display());
    let agent = agent.to_str().expect("a path of ours");
    wharf.start(
        "a",
        &[],
        &[agent, "plain", "--work", "20", "--log", record.to_str().expect("a path of ours")],
    );

    let done = AtomicBool::new(false);
    let receipts: Vec<(String, Ran)> = std::thread::scope(|scope| {
        scope.spawn(|| {
            // A pause of another length each time, so that every point of a delivery is hit in the end.
            let mut pause = 40;
            while !done.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(pause));
                pause = 40 + (pause * 7 + 13) % 700;
                if let Some(pid) = wharf.daemon_pid() {
                    kill(pid);
                }
            }
        });
        let senders: Vec<_> = (0..2)
            .map(|sender| {
                let wharf = &wharf;
                scope.spawn(move || {
                    let send = |number| {
                        let text = format!("message {sender}.{number} and some more words");
                        let ran = wharf.run(&["send", "a", &text, "--json", "--timeout", "30s"]);
                        (text, ran)
                    };
                    (0..12).map(send).collect::<Vec<_>>()
                })
            })
            .collect();
        let receipts = senders.into_iter().flat_map(|sender| sender.join().expect("a sender ends")).collect();
        done.store(true, Ordering::Release);
        receipts
    });

    let mut got: HashMap<String, usize> = HashMap::new();
    for line in fs::read_to_string(&record).expect("the agent's record").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(text) = line["text"].as_str() {
            *got.entry(text.to_owned()).or_default() += 1;
        }
    }
    let mut unknown = 0;
    for (text, ran) in &receipts {
        let receipt: Value =
            serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("no receipt: {ran:#?}"));
        let times = got.get(text).copied().unwrap_or(0);
        assert!(times <= 1, "{text} came {times} times: {receipt:#}");
        match receipt["status"].as_str() {
            Some("confirmed") => assert_eq!(times, 1, "{text} is confirmed and did not come: {receipt:#}"),
            Some("unconfirmed") => unknown += 1,
            other => panic!("{text} is {other:?}: {receipt:#}"),
        }
    }
    let known: usize = receipts.iter().map(|(text, _)| got.get(text).copied().unwrap_or(0)).sum();
    assert_eq!(known, got.values().sum::<usize>(), "something came that nobody sent: {got:?}");
    assert!(unknown < receipts.len() / 2, "{unknown} of {} are not known", receipts.len());
    // Whoever cleans up after a test asks a daemon, and the last one may still be dying.
    assert!(until(|| wharf.run(&["kill", "a"]).code == 0), "{:#?}", wharf.run(&["kill", "a"]));
}
