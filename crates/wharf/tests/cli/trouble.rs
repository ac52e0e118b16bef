//! Tests suspended commands, events of restarts, the last event, and disk usage.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Wharf, until};

fn events(wharf: &Wharf, name: &str) -> Vec<Value> {
    let text = wharf.ok(&["events", name, "--json"]);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(wharf: &Wharf, name: &str) -> Vec<String> {
    events(wharf, name).iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_command_that_is_stopped_is_suspended_until_it_goes_on() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    let shown = || wharf.json(&["show", "one", "--json"])["suspended"].clone();
    assert_eq!(shown(), false);
    wharf.ok(&["signal", "one", "STOP"]);
    assert!(until(|| shown() == true), "{}", wharf.ok(&["show", "one", "--json"]));
    let listed = wharf.json(&["ls", "--json"]);
    assert_eq!((&listed[0]["suspended"], &listed[0]["paused"]), (&true.into(), &false.into()), "{listed}");
    assert!(wharf.ok(&["ls"]).contains(", suspended"), "{}", wharf.ok(&["ls"]));
    // Another daemon knows it too, and tells it once.
    wharf.kill_daemon();
    assert!(until(|| shown() == true), "{}", wharf.ok(&["show", "one", "--json"]));
    wharf.ok(&["signal", "one", "CONT"]);
    assert!(until(|| shown() == false), "{}", wharf.ok(&["show", "one", "--json"]));
    let told: Vec<String> = kinds(&wharf, "one")
        .into_iter()
        .filter(|kind| matches!(kind.as_str(), "suspended" | "resumed"))
        .collect();
    assert_eq!(told, ["suspended", "resumed"]);
    // A kill stops what forks before it ends it, and that is no news.
    wharf.ok(&["kill", "one"]);
    assert_eq!(kinds(&wharf, "one").last().unwrap(), "exit", "{:?}", kinds(&wharf, "one"));
    assert_eq!(wharf.json(&["show", "one", "--json"])["suspended"], false);
}

#[test]
fn another_run_is_an_event_whoever_began_it() {
    let wharf = Wharf::new();
    let options = ["--restart", "on-failure", "--restart-max", "2"];
    wharf.start("one", &options, &["sh", "-c", "exit 3"]);
    assert_eq!(wharf.run(&["wait", "one", "--timeout", "30"]).code, 3);
    let restarted: Vec<Value> =
        events(&wharf, "one").into_iter().filter(|event| event["kind"] == "restarted").collect();
    let runs: Vec<&Value> = restarted.iter().map(|event| &event["data"]["run"]).collect();
    assert_eq!(runs, [&Value::from(2), &Value::from(3)], "{restarted:#?}");
    let first = &restarted[0]["data"];
    assert_eq!((&first["by"], &first["exit"]["code"]), (&"policy".into(), &3.into()), "{first}");
    assert_eq!(kinds(&wharf, "one").iter().filter(|kind| *kind == "exit").count(), 1);
    wharf.ok(&["restart", "one"]);
    assert_eq!(wharf.run(&["wait", "one", "--timeout", "30"]).code, 3);
    let all = events(&wharf, "one");
    let by_hand = all.iter().filter(|event| event["data"]["by"] == "request").count();
    assert_eq!((by_hand, &all.last().unwrap()["kind"]), (1, &"exit".into()), "{all:#?}");
}

#[test]
fn nothing_follows_the_end_in_the_events() {
    let wharf = Wharf::on_this_host();
    // A message that nobody will read any more.
    wharf.start("busy", &[], &["sh", "-c", "trap '' INT; while :; do sleep 0.1; done"]);
    wharf.ok(&["send", "busy", "hello", "--no-wait"]);
    wharf.ok(&["kill", "busy"]);
    assert!(until(|| kinds(&wharf, "busy").contains(&"exit".to_owned())));
    let messages = || wharf.json(&["messages", "busy", "--json"]);
    assert!(until(|| messages()[0]["status"] == "refused"), "{}", messages());
    let told = kinds(&wharf, "busy");
    assert_eq!(told.last().unwrap(), "exit", "{told:?}");
    assert!(told.contains(&"message".to_owned()), "{told:?}");

    // An agent that prints what it did and ends at once.
    let bin = wharf.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = bin.join("claude");
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"word"}]}}"#;
    let last = r#"{"type":"result","result":"done","is_error":false}"#;
    let script = format!("#!/bin/sh\nfor i in $(seq 200); do echo '{line}'; done\nprintf '%s' '{last}'\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let argv = [program.to_str().unwrap(), "-p", "x", "--output-format", "stream-json"];
    for name in ["a", "b", "c"] {
        wharf.start(name, &["--no-tty"], &argv);
        let text = wharf.ok(&["events", name, "-f", "--json"]);
        let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let count = |kind: &str| all.iter().filter(|event| event["kind"] == kind).count();
        assert_eq!((count("assistant"), count("turn.ended"), count("exit")), (200, 1, 1), "{text}");
        assert_eq!(all.last().unwrap()["kind"], "exit", "{text}");
        assert_eq!(kinds(&wharf, name).last().unwrap(), "exit");
    }
}

#[test]
fn what_was_written_to_disk_is_counted() {
    let wharf = Wharf::on_this_host();
    let script =
        "dd if=/dev/zero of=made bs=1M count=8 conv=fsync 2>/dev/null; echo written; exec sleep 1000";
    wharf.start("one", &[], &["sh", "-c", script]);
    wharf.until_log("one", "written");
    let stats = wharf.json(&["stats", "one", "--json"]);
    assert_eq!(stats[0]["network"], Value::Null, "{stats}");
    assert!(stats[0].as_object().unwrap().contains_key("network"), "{stats}");
    let on_disk = std::fs::metadata(wharf.home().join("made")).unwrap();
    assert_eq!(on_disk.len(), 8 << 20);
    assert!(stats[0]["io"]["written"].as_u64() >= Some(8 << 20), "{stats}");
    assert!(stats[0]["io"]["read"].is_u64(), "{stats}");
    let table = wharf.ok(&["stats", "one"]);
    assert!(table.contains("WRITTEN") && table.contains("8.0"), "{table}");
}
