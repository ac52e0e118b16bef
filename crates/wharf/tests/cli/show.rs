//! Tests that `wharf show` and `explain` give a state's source and evidence.

use std::path::Path;

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

#[test]
fn the_path_of_the_log_is_shown() {
    let wharf = Wharf::on_this_host();
    wharf.start("one", &["--no-tty"], &["echo", "what it printed"]);
    wharf.ok(&["wait", "one"]);
    let page = wharf.ok(&["show", "one"]);
    let path = page.lines().find_map(|line| line.strip_prefix("log "));
    let path = Path::new(path.unwrap_or_else(|| panic!("no log: {page}")).trim());
    let files: Vec<_> =
        std::fs::read_dir(path).expect("a directory").flatten().map(|file| file.path()).collect();
    let segment = files.iter().find(|file| file.extension().is_some_and(|extension| extension == "log"));
    let segment = segment.unwrap_or_else(|| panic!("no segment: {files:?}"));
    assert_eq!(std::fs::read_to_string(segment).expect("ours"), "what it printed\n");
    assert!(path.starts_with(wharf.state()), "{}", path.display());
}
