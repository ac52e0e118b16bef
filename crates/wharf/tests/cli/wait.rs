//! Tests `wharf wait`: codes, timeouts, `--until`, and daemons that die meanwhile.

use std::process::Stdio;

use crate::support::{Wharf, until};

#[test]
fn the_code_is_the_commands() {
    let wharf = Wharf::new();
    wharf.start("seven", &[], &["sh", "-c", "exit 7"]);
    wharf.start("term", &[], &["sh", "-c", "kill -TERM $$"]);
    wharf.start("zero", &[], &["true"]);
    assert_eq!(wharf.run(&["wait", "seven"]).code, 7);
    assert_eq!(wharf.run(&["wait", "term"]).code, 143);
    assert_eq!(wharf.run(&["wait", "zero", "seven", "term"]).code, 7);
    assert_eq!(wharf.run(&["wait", "nothing"]).code, 3);
}

#[test]
fn a_timeout_is_124() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    let ran = wharf.run(&["wait", "--timeout", "50ms", "one"]);
    assert_eq!(ran.code, 124, "{ran:#?}");
    assert_eq!(wharf.run(&["wait", "--until", "nonsense", "one"]).code, 2);
}

#[test]
fn a_daemon_that_dies_meanwhile_is_replaced() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "read x; exit 9"]);
    let waiting = wharf.command(&["wait", "one"]).stdout(Stdio::piped()).spawn().unwrap();
    wharf.kill_daemon();
    wharf.ok(&["keys", "one", "Enter"]);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(9));
}

#[test]
fn a_state_a_line_or_an_event_is_waited_for() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    wharf.ok(&["send", "one", "read -p 'your name: ' x"]);
    let met = wharf.json(&["wait", "one", "--until", "match=name: *$", "--timeout", "20", "--json"]);
    assert_eq!(
        (&met[0]["session"]["name"], met[0]["evidence"].as_str()),
        (&"one".into(), Some("your name:"))
    );
    assert_eq!(wharf.run(&["wait", "one", "--until", "asking", "--timeout", "200ms"]).code, 124);
    let waiting = wharf.command(&["wait", "one", "--until", "event=exit"]).spawn().unwrap();
    assert_eq!(wharf.run(&["wait", "one", "--until", "match=(", "--timeout", "5"]).code, 2);
    wharf.ok(&["kill", "one"]);
    waiting.wait_with_output().unwrap();
    assert_eq!(wharf.run(&["wait", "one", "--until", "exit"]).code, 0, "met, whatever the command's code");
    assert_eq!(wharf.run(&["wait", "one", "--until", "idle"]).code, 4, "it ended before");
}

#[test]
fn what_has_ended_is_not_idle_though_it_was_when_it_was_last_seen() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    wharf.ok(&["kill", "one"]);
    let ran = wharf.run(&["wait", "one", "--until", "idle"]);
    assert!(ran.code == 4 && ran.err.contains("has ended"), "{ran:#?}");
}

#[test]
fn a_timeout_is_told_as_it_was_given() {
    let wharf = Wharf::new();
    wharf.start("one", &["--no-tty"], &["sleep", "1000"]);
    let ran = wharf.run(&["wait", "--timeout", "1", "one"]);
    assert!(ran.code == 124 && ran.err.contains("session \"one\" did not end within 1 s"), "{ran:#?}");
    let ran = wharf.run(&["wait", "--timeout", "1", "--until", "exit", "one"]);
    assert!(ran.code == 124 && ran.err.contains("session \"one\" was not at exit within 1 s"), "{ran:#?}");
}

#[test]
fn one_that_is_missing_stops_nothing_for_the_others() {
    let wharf = Wharf::new();
    wharf.start("seven", &[], &["sh", "-c", "exit 7"]);
    wharf.start("pipes", &["--no-tty"], &["sleep", "1000"]);
    let ran = wharf.run(&["wait", "--json", "missing", "seven"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let exits: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(exits[0]["code"], 7, "{exits}");
    assert_eq!(wharf.run(&["interrupt", "missing", "pipes"]).code, 3);
    assert_eq!(wharf.run(&["wait", "pipes"]).code, 130, "it was interrupted all the same");
    let ran = wharf.run(&["stop", "missing", "seven"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (3, "seven had ended already (exited with code 7)\n"),
        "{ran:#?}"
    );
}

#[test]
fn a_session_starts_once_another_is_idle() {
    let wharf = Wharf::on_this_host();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "30"]);
    wharf.ok(&["send", "one", "sleep 1000", "--timeout", "30"]);
    wharf.ok(&["wait", "one", "--until", "working", "--timeout", "30"]);
    wharf.start("then", &["--after", "one:idle"], &["sh", "-c", "echo then ran; exec sleep 1000"]);
    wharf.start("never", &["--after", "one:idle"], &["sleep", "1000"]);
    let waits = wharf.json(&["show", "then", "--json"]);
    assert_eq!((&waits["state"], &waits["detail"]), (&"starting".into(), &"waits for one to be idle".into()));
    // Another daemon goes on waiting.
    wharf.kill_daemon();
    assert_eq!(wharf.json(&["show", "then", "--json"])["state"], "starting");
    wharf.ok(&["stop", "never"]);
    assert_eq!(wharf.json(&["show", "then", "--json"])["state"], "starting");
    wharf.ok(&["keys", "one", "C-c"]);
    wharf.ok(&["wait", "then", "--until", "match=then ran", "--timeout", "30"]);
    // One that ends before it is idle fails what waits for it.
    wharf.start("busy", &[], &["sh", "-c", "echo busy; exec sleep 1000"]);
    wharf.start("after", &["--after", "busy:idle"], &["true"]);
    wharf.ok(&["kill", "busy"]);
    assert!(until(|| wharf.json(&["show", "after", "--json"])["state"] == "exited"));
    let failed = wharf.json(&["show", "after", "--json"]);
    assert_eq!(failed["exit"]["reason"], "failed", "{failed}");
    assert_eq!(failed["detail"], "session busy ended before it was idle", "{failed}");
}
