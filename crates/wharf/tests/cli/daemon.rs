//! Tests `wharf daemon`, `doctor` and `backends`, and that a killed daemon loses nothing.

use crate::support::{Wharf, is_live};

#[test]
fn status_never_starts_one_and_stop_leaves_sessions_running() {
    let wharf = Wharf::new();
    let none = wharf.run(&["daemon", "status", "--json"]);
    assert_eq!((none.code, none.out.as_str()), (3, "{\"running\":false}\n"));
    wharf.start("one", &[], &["sh", "-c", "read x; echo \"<$x>\"; sleep 1000"]);
    let status = wharf.json(&["daemon", "status", "--json"]);
    for field in ["pid", "socket", "version"] {
        assert!(status.get(field).is_some(), "{status}");
    }
    let pid = wharf.json(&["show", "one", "--json"])["pid"].clone();
    wharf.ok(&["daemon", "stop"]);
    assert_eq!(wharf.daemon_pid(), None);
    // Typing needs no daemon, and the next command that does starts one.
    wharf.ok(&["keys", "one", "y", "Enter"]);
    wharf.until_log("one", "<y>");
    assert_eq!(wharf.daemon_pid(), None);
    let after = wharf.json(&["show", "one", "--json"]);
    assert!(after["pid"] == pid && is_live(&after), "{after}");
    assert!(wharf.daemon_pid().is_some());
}

#[test]
fn a_killed_daemon_loses_nothing() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    let before = wharf.json(&["show", "one", "--json"])["pid"].clone();
    for round in 0..3 {
        let old = wharf.kill_daemon();
        let list = wharf.json(&["ls", "--json"]);
        assert!(list[0]["pid"] == before && is_live(&list[0]), "{list}");
        assert_ne!(wharf.daemon_pid(), Some(old));
        let word = format!("round{round}");
        wharf.ok(&["write", "one", &format!("{word}\r")]);
        wharf.until_log("one", &format!("{word}\r\n{word}"));
    }
}

#[test]
fn doctor_finds_nothing_wrong_and_backends_has_a_default() {
    let wharf = Wharf::new();
    let ran = wharf.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let backends = wharf.json(&["backends", "--json"]);
    assert_eq!((&backends[0]["name"], &backends[0]["available"]), (&"local".into(), &true.into()));
}

#[test]
fn places_say_what_they_can_do_and_refuse_the_rest() {
    // It names its places.
    let wharf = Wharf::on_this_host();
    let places = wharf.json(&["backends", "--json"]);
    let can = |place: &str, what: &str| {
        let found = places.as_array().unwrap().iter().find(|found| found["name"] == place);
        found.unwrap_or_else(|| panic!("{place} is not in {places}"))["capabilities"][what].as_bool()
    };
    for (place, what, claimed) in [
        ("local", "pipes", true),
        ("local", "images", false),
        ("local", "isolation", false),
        ("tmux", "pipes", false),
        ("tmux", "answers", true),
        ("docker", "images", true),
        ("podman", "isolation", true),
    ] {
        assert_eq!(can(place, what), Some(claimed), "{place}: {what}");
    }
    let pipes = wharf.run(&["run", "-d", "--backend", "tmux", "--no-tty", "--", "true"]);
    assert_eq!(pipes.code, 6, "{pipes:#?}");
    assert_eq!(wharf.run(&["image", "ls", "--backend", "local"]).code, 6);
}
