//! Tests that `wharf show` and `explain` give a state's source and evidence.

use crate::support::Wharf;

#[test]
fn a_state_has_a_source_a_time_and_evidence() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    let session = wharf.json(&["show", "one", "--json"]);
    assert_eq!(session["state"], "idle", "{session}");
    assert!(session["state_source"].is_string() && session["state_since"].as_u64() > Some(0), "{session}");
    let page = wharf.ok(&["show", "one"]);
    assert!(page.contains("state      idle") && page.contains("source: "), "{page}");

    let why = wharf.json(&["explain", "one", "--json"]);
    assert_eq!(
        (why["report"]["state"].as_str(), why["profile"].as_str()),
        (Some("idle"), Some("shell")),
        "{why}"
    );
    assert!(why["claims"].as_array().is_some_and(|claims| !claims.is_empty()), "{why}");
    let page = wharf.ok(&["explain", "one"]);
    assert!(page.contains("decided") && page.contains("SOURCE"), "{page}");
    wharf.ok(&["kill", "one"]);
    assert_eq!(wharf.json(&["explain", "one", "--json"])["report"]["state"], "exited");
}
