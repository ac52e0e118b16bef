//! Tests `wharf pause` and `unpause`, across daemons, stops and messages.

use serde_json::Value;
use wharf_backend::conformance::left_out;

use crate::support::{Wharf, until};

const COUNT: &str = "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.02; done";

fn is_paused(wharf: &Wharf, name: &str) -> bool {
    wharf.json(&["show", name, "--json"])["paused"] == true
}

/// Pauses sessions, where that can be had: on this host it takes a control group of one's own.
fn pause(wharf: &Wharf, names: &[&str]) -> String {
    let ran = wharf.run(&[&["pause"], names].concat());
    if ran.code == 6 && ran.err.contains("does not support pausing") {
        left_out("sessions cannot be paused here: there is no control group for them");
    }
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.out
}

#[test]
fn a_paused_session_is_shown_and_survives_the_daemon() {
    // It names its backends.
    let wharf = Wharf::on_this_host();
    for (name, backend) in [("one", "local"), ("pane", "tmux")] {
        wharf.start(name, &["--backend", backend], &["sh", "-c", COUNT]);
        wharf.until_log(name, "3");
    }
    assert_eq!(pause(&wharf, &["one", "pane"]), "one paused\npane paused\n");
    // Whatever was on its way to the log is there once the daemon has been asked something else.
    let ls: Value = wharf.json(&["ls", "--json"]);
    assert!(ls.as_array().is_some_and(|all| all.iter().all(|session| session["paused"] == true)), "{ls}");
    assert!(ls[0]["state"] == "running", "{ls}");
    assert!(wharf.ok(&["ls"]).contains("running, paused"));
    assert!(wharf.ok(&["show", "one"]).contains(", paused"));
    wharf.kill_daemon();
    let before = [wharf.log("one"), wharf.log("pane")];
    assert!(is_paused(&wharf, "one") && is_paused(&wharf, "pane"), "a new daemon sees what is");
    assert_eq!([wharf.log("one"), wharf.log("pane")], before, "nothing of it runs");
    assert_eq!(wharf.ok(&["unpause", "--all"]), "one unpaused\npane unpaused\n");
    assert!(until(|| wharf.log("one").len() > before[0].len() && wharf.log("pane").len() > before[1].len()));
    assert!(!is_paused(&wharf, "one"));
}

#[test]
fn a_paused_session_is_stopped_killed_and_started_again() {
    let wharf = Wharf::new();
    let polite = format!("trap 'echo bye; exit 7' TERM; {COUNT}");
    for name in ["stopped", "killed", "again"] {
        wharf.start(name, &[], &["sh", "-c", &polite]);
        wharf.until_log(name, "3");
        pause(&wharf, &[name]);
    }
    wharf.ok(&["stop", "stopped"]);
    let exit = &wharf.json(&["show", "stopped", "--json"])["exit"];
    assert_eq!(exit["code"], 7, "it heard that it was to end: {exit}");
    wharf.ok(&["kill", "killed"]);
    wharf.ok(&["restart", "again"]);
    let shown = wharf.json(&["show", "again", "--json"]);
    assert!(shown["paused"] == false && shown["run"] == 2, "{shown}");
    let ran = wharf.run(&["pause", "killed"]);
    assert!(ran.code == 4 && ran.err.contains("has ended"), "{ran:#?}");
    assert_eq!(wharf.run(&["unpause", "stopped"]).code, 4);
    assert_eq!(wharf.run(&["pause", "nobody"]).code, 3);
}

#[test]
fn a_message_waits_for_a_paused_session() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    pause(&wharf, &["one"]);
    let late = wharf.run(&["send", "one", "too late", "--timeout", "1", "--json"]);
    assert_eq!(late.code, 12, "{late:#?}");
    assert!(late.out.contains("is paused"), "{late:#?}");
    let now = wharf.run(&["send", "one", "now", "--when", "now", "--json"]);
    assert_eq!(now.code, 10, "{now:#?}");
    wharf.ok(&["send", "one", "in time", "--no-wait"]);
    wharf.ok(&["unpause", "one"]);
    wharf.until_log("one", "in time\r\nin time");
    assert!(!String::from_utf8_lossy(&wharf.log("one")).contains("too late"));
}
