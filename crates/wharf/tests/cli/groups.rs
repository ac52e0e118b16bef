//! Groups: what there is, and what is said of one that there is not.

use crate::support::Wharf;

#[test]
fn groups_are_listed_and_labels_too() {
    let wharf = Wharf::new();
    assert_eq!(wharf.json(&["groups", "--json"]), serde_json::json!([]));
    for (name, group) in [("a", "team"), ("b", "team"), ("c", "other")] {
        wharf.start(name, &["-g", group, "-l", "kind=x", "-l", "only="], &["sleep", "1000"]);
    }
    wharf.start("alone", &[], &["sleep", "1000"]);
    wharf.ok(&["kill", "b"]);
    let groups = wharf.json(&["groups", "--json"]);
    let row = |name: &str, sessions: u32, running: u32| serde_json::json!({ "name": name, "sessions": sessions, "running": running, "asking": 0 });
    assert_eq!(groups, serde_json::json!([row("other", 1, 1), row("team", 2, 1)]));
    let table = wharf.ok(&["groups"]);
    assert!(table.starts_with("NAME   SESSIONS  RUNNING  ASKING\nother  1         1        0\n"), "{table}");
    let all = wharf.json(&["ls", "--json"]);
    assert_eq!(all[0]["labels"], serde_json::json!({ "kind": "x", "only": "" }));
    assert_eq!(all[3]["labels"], serde_json::json!({}));
    let running = wharf.json(&["ls", "--json", "--running", "a"]);
    assert_eq!(running[0]["labels"]["kind"], "x");
}

#[test]
fn a_group_that_there_is_not_is_an_error_in_every_verb() {
    let wharf = Wharf::new();
    wharf.start("one", &["-g", "there"], &["sleep", "1000"]);
    for verb in ["ls", "stop", "kill", "restart", "rm", "pause", "unpause"] {
        let ran = wharf.run(&[verb, "--group", "nosuch"]);
        assert_eq!(ran.code, 3, "{verb}: {ran:#?}");
        assert!(ran.err.starts_with("wharf: there is no group \"nosuch\"\nhint: "), "{verb}: {ran:#?}");
    }
    assert_eq!(wharf.run(&["signal", "INT", "--group", "nosuch"]).code, 3);
    assert_eq!(wharf.run(&["ls", "--json", "--group", "nosuch"]).code, 3);
    assert_eq!(wharf.run(&["ls", "one", "--group", "nosuch"]).code, 3);
    // One that is there and of which nothing is to be done is none.
    wharf.ok(&["kill", "--group", "there"]);
    wharf.ok(&["kill", "--group", "there"]);
    assert_eq!(wharf.ok(&["ls", "-q", "--group", "there"]), "one\n");
    // A group goes with its last session; starting one makes it.
    wharf.ok(&["rm", "--group", "there"]);
    assert_eq!(wharf.run(&["ls", "--group", "there"]).code, 3);
    wharf.start("two", &["-g", "there"], &["sleep", "1000"]);
    assert_eq!(wharf.ok(&["ls", "-q", "--group", "there"]).lines().count(), 1);
}

#[test]
fn what_ended_long_ago_is_said_to_have_ended() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "exit 5"]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 5);
    for verb in ["kill", "stop"] {
        assert_eq!(wharf.ok(&[verb, "one"]), "one had ended already (exited with code 5)\n", "{verb}");
        // Also where only the history knows of it.
        wharf.kill_daemon();
        assert_eq!(wharf.ok(&[verb, "one"]), "one had ended already (exited with code 5)\n", "{verb}");
    }
}
