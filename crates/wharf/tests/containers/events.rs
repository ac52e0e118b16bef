//! Processes in a container tell events, and speak for their own session alone.

use serde_json::Value;

use crate::dock::{Dock, on_both};
use crate::support::{is_live, until};

on_both! {
    a_process_tells_and_a_hook_is_heard
    a_room_speaks_for_its_own_session
    a_child_that_is_killed_for_want_of_memory_is_told
    a_doctor_says_the_version_of_the_engine
}

/// What was told of a session by others than the engine.
fn told(dock: &Dock, name: &str, source: &str) -> Vec<Value> {
    let text = dock.ok(&["events", name, "--json"]);
    let all = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    all.filter(|event: &Value| event["source"] == source).collect()
}

fn a_process_tells_and_a_hook_is_heard(dock: &Dock) {
    let stop = r#"{"hook_event_name":"Stop","session_id":"x"}"#;
    let script = format!(
        "hook='/run/wharf/holder hook claude'; test -S \"$WHARF_EVENTS\"; echo a$?; echo '{stop}' | $hook; echo b$?; \
         echo nonsense | $hook; echo c$?; read -r x; $hook '{stop}'; echo d$?; read -r x"
    );
    dock.start("one", &[], &["sh", "-c", &script]);
    dock.wharf.until_log("one", "c0");
    assert_eq!(told(dock, "one", "hook").len(), 1);
    // Another daemon listens in the same room.
    dock.wharf.kill_daemon();
    dock.ok(&["show", "one"]);
    dock.ok(&["write", "one", "\n"]);
    dock.wharf.until_log("one", "d0");
    let heard = told(dock, "one", "hook");
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert_eq!(heard[0]["kind"], "turn.ended", "{heard:?}");
    let log = String::from_utf8_lossy(&dock.wharf.log("one")).into_owned();
    assert!(log.contains("a0") && log.contains("b0"), "{log}");
    dock.ok(&["kill", "one"]);
    dock.must_be_empty();
}

fn a_room_speaks_for_its_own_session(dock: &Dock) {
    dock.start("other", &[], &["sleep", "600"]);
    let ticket = std::fs::read(dock.wharf.state().join("names/other/ticket.json")).expect("a ticket");
    let ticket: Value = serde_json::from_slice(&ticket).expect("JSON");
    dock.start("one", &["--user", "1234:1234"], &["sleep", "600"]);
    // What a process in the container would write there, from this side of the same room.
    let room = dock.wharf.state().join("names/one/room/events");
    let speak = || -> std::io::Result<String> {
        use std::io::{BufRead, BufReader, Write};
        let mut stream = std::os::unix::net::UnixStream::connect(&room)?;
        let claim = serde_json::json!({ "v": 1, "session": ticket["id"], "token": ticket["token"] });
        writeln!(stream, "{claim}")?;
        writeln!(stream, r#"{{"v":1,"kind":"mine","seq":1,"ack":true}}"#)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        Ok(answer)
    };
    let answer: Value = serde_json::from_str(&speak().expect("it is heard")).expect("JSON");
    assert!(answer["event"].is_u64(), "{answer}");
    let kinds = |name: &str| {
        told(dock, name, "sidecar").into_iter().map(|event| event["kind"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((kinds("one"), kinds("other")), (vec!["mine".into()], vec![]));
    dock.ok(&["kill", "one", "other"]);
    dock.must_be_empty();
}

fn a_child_that_is_killed_for_want_of_memory_is_told(dock: &Dock) {
    // `tail` keeps a line that never ends.
    let eat = "tail </dev/zero >/dev/null 2>&1";
    let script = format!("{eat}; echo first $?; read -r line; {eat}; echo second $?; exec sleep 600");
    dock.start("one", &["--memory", "64m"], &["sh", "-c", &script]);
    let kills = || -> Vec<Value> {
        let told = told(dock, "one", "engine").into_iter();
        told.filter(|event| event["kind"] == "oom").map(|event| event["data"]["kills"].clone()).collect()
    };
    dock.wharf.until_log("one", "first 137");
    assert!(until(|| kills() == [1]), "{:?}", kills());
    let shown = || -> Value { serde_json::from_str(&dock.ok(&["show", "one", "--json"])).expect("JSON") };
    assert!(is_live(&shown()), "the command lives on: {}", shown());
    // What another daemon finds counted was told already; the next is news.
    dock.wharf.kill_daemon();
    dock.ok(&["write", "one", "go\n"]);
    dock.wharf.until_log("one", "second 137");
    assert!(until(|| kills() == [1, 2]), "{:?}", kills());
    assert!(is_live(&shown()), "the command lives on: {}", shown());
    dock.ok(&["kill", "one"]);
    dock.must_be_empty();
}

fn a_doctor_says_the_version_of_the_engine(dock: &Dock) {
    let version = dock.engine(&["version", "--format", "{{.Server.Version}}"]);
    let name = format!("backend {}", dock.backend());
    let check = || -> Value {
        let checks: Value = serde_json::from_str(&dock.run(&["doctor", "--json"]).out).expect("JSON");
        let mut checks = checks.as_array().expect("checks").iter();
        checks.find(|check| check["name"] == name.as_str()).expect("every backend is looked at").clone()
    };
    // An engine that is busy may take longer than a probe waits.
    let begins = format!("{version}, API ");
    let tells = || check()["detail"].as_str().is_some_and(|detail| detail.starts_with(&begins));
    assert!(!version.is_empty() && until(tells), "{version:?}: {}", check());
    assert_eq!(check()["ok"], true, "{}", check());
}
