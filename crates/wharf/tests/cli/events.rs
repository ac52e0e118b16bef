//! Tests `wharf events`, the event socket and `wharf hook`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::Wharf;

fn ticket(wharf: &Wharf, name: &str) -> Value {
    let file = wharf.state().join("names").join(name).join("ticket.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn events(wharf: &Wharf, name: &str) -> Vec<Value> {
    let text = wharf.ok(&["events", name, "--json"]);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_are_numbered_and_go_on_after_a_daemons_end() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["send", "one", "echo hello"]);
    let before = events(&wharf, "one");
    let numbers: Vec<u64> = before.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(before.iter().any(|event| event["kind"] == "message" && event["data"]["status"] == "confirmed"));

    let mut following = wharf
        .command(&["events", "one", "--after", "1", "-f", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || -> u64 {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        event["seq"].as_u64().unwrap()
    };
    assert_eq!(next(), 2);
    wharf.kill_daemon();
    wharf.ok(&["send", "one", "exit", "--no-wait"]);
    let mut last = 2;
    while last < numbers.len() as u64 + 1 {
        let seq = next();
        assert_eq!(seq, last + 1);
        last = seq;
    }
    assert_eq!(following.wait().unwrap().code(), Some(0), "it ends with the session");
    let table = wharf.ok(&["events", "one", "--kind", "message"]);
    assert!(table.lines().count() > 1 && table.lines().all(|line| line.contains(" message ")), "{table}");
}

#[test]
fn a_process_with_the_sessions_mark_tells_events() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let ticket = ticket(&wharf, "one");
    let mut socket = UnixStream::connect(wharf.state().join("events.sock")).unwrap();
    let mut answers = BufReader::new(socket.try_clone().unwrap()).lines();
    let mut tell = |event: Value| -> Value {
        socket.write_all(format!("{event}\n").as_bytes()).unwrap();
        serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
    };
    let refused = tell(json!({ "v": 1, "kind": "x", "ack": true }));
    assert_eq!(refused["error"]["code"], "forbidden");
    let refused = tell(json!({ "v": 1, "session": "one", "token": "wrong", "ack": true }));
    assert_eq!(refused["error"]["code"], "forbidden");
    let hello = json!({ "v": 1, "session": ticket["id"], "token": ticket["token"], "ack": true });
    assert_eq!(tell(hello)["error"], Value::Null);
    let long = "x".repeat(3 << 20);
    let told = tell(json!({ "v": 1, "kind": "made.up", "data": { "long": long }, "seq": 7, "ack": true }));
    assert!(told["event"].as_u64() > Some(0) && told["ack"] == 7, "{told}");
    assert_eq!(tell(json!({ "v": 1, "kind": "again", "seq": 7, "ack": true }))["event"], Value::Null);
    tell(json!({ "v": 1, "kind": "later", "seq": 9, "ack": true }));
    let all = events(&wharf, "one");
    let kinds: Vec<&str> = all
        .iter()
        .filter(|event| event["source"] == "sidecar")
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["made.up", "gap", "later"]);
    let kept = all.iter().find(|event| event["kind"] == "made.up").unwrap();
    assert_eq!(kept["data"]["long"].as_str().map(str::len), Some(3 << 20));

    tell(json!({ "v": 1, "kind": "permission.asked", "data": { "tool": "rm" }, "ack": true }));
    let met = wharf.json(&["wait", "one", "--until", "asking", "--timeout", "20", "--json"]);
    assert_eq!(met[0]["session"]["state_source"], "agent", "{met}");
}

#[test]
fn a_hook_is_quiet_and_tells_what_it_was_given() {
    // In a container the holder is the hook, and that is tried with the containers.
    let wharf = Wharf::on_this_host();
    let outside = wharf.run_with(&["hook", "claude"], b"{}");
    assert_eq!((outside.code, outside.out.as_str(), outside.err.as_str()), (0, "", ""));
    assert_eq!(wharf.daemon_pid(), None, "no daemon is started for it");

    wharf.start("one", &[], &["sh"]);
    let program = env!("CARGO_BIN_EXE_wharf");
    let stop = r#"{"hook_event_name":"Stop","session_id":"x"}"#;
    let script = format!(
        "echo '{stop}' | {program} hook claude; echo a$?; {program} hook claude '{stop}'; echo b$?; \
         echo nonsense | {program} hook claude; echo c$?; test -S \"$WHARF_EVENTS\"; echo d$?"
    );
    wharf.ok(&["send", "one", &script]);
    for done in ["a0", "b0", "c0", "d0"] {
        wharf.until_log("one", &format!("\n{done}\r\n"));
    }
    let told = events(&wharf, "one").into_iter().filter(|event| event["source"] == "hook");
    let kinds: Vec<Value> = told.map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds, ["turn.ended", "turn.ended"]);
}
