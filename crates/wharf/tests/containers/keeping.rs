//! A container that stays after its end, and those that should not.

use wharf_container::Flavour;

use crate::dock::{Dock, on_both};
use crate::engine::IMAGE;
use crate::support::until;

on_both! {
    what_is_kept_goes_on_and_goes_with_its_session
    what_a_kept_container_puts_in_the_place_of_our_directory_leads_nowhere
}

#[test]
fn what_cannot_be_kept_is_refused_and_leaves_nothing() {
    let dock = Dock::far(Flavour::Docker);
    let place = ["run", "-d", "-b", "docker", "--image", IMAGE, "--network", "none", "--keep"];
    let ran = dock.run(&[&place[..], &["--", "cat"]].concat());
    assert_eq!(ran.code, 6, "{ran:#?}");
    let ran = dock.run(&[&place[..], &["--reuse", "--", "cat"]].concat());
    assert_eq!(ran.code, 2, "{ran:#?}");
    dock.must_be_empty();
    assert_eq!(dock.ok(&["ls", "-q"]), "");
}

/// Between two runs the container's own root has had its hands on where our files are mounted. Engines look for that place
/// inside of the container, so whatever it put there leads to itself alone.
fn what_a_kept_container_puts_in_the_place_of_our_directory_leads_nowhere(dock: &Dock) {
    let precious = dock.wharf.home().join("precious");
    std::fs::create_dir(&precious).expect("a directory");
    let named = precious.display();
    for (name, put) in [
        ("up", "ln -s ../../../../../../../../../../.. /run/wharf".to_owned()),
        ("out", format!("ln -s {named} /run/wharf")),
        ("file", "echo > /run/wharf".to_owned()),
        ("fifo", "mkfifo /run/wharf".to_owned()),
        ("holder", "mkdir /run/wharf; printf '#!/bin/sh\\necho evil' > /run/wharf/holder; chmod 755 /run/wharf/holder".to_owned()),
    ] {
        let script = format!(
            "echo begun; read -r go; test -e /run/old || {{ mv /run/wharf /run/old; {put}; }}; echo put; \
             read -r line; echo again; sleep 600"
        );
        dock.start(name, &["--keep"], &["sh", "-c", &script]);
        // Its log is open by then: one that takes it away before has none, which is its own loss.
        dock.wharf.until_log(name, "begun");
        dock.ok(&["write", name, "go\n"]);
        dock.wharf.until_log(name, "put");
        dock.ok(&["kill", name]);
        let restarted = dock.run(&["restart", name]);
        if restarted.code == 0 {
            dock.ok(&["write", name, "go\nx\n"]);
            dock.wharf.until_log(name, "again");
        } else {
            assert!(restarted.err.contains("hint:") || restarted.err.contains("wharf:"), "{restarted:#?}");
        }
        assert!(!String::from_utf8_lossy(&dock.wharf.log(name)).contains("evil"), "{name}");
        dock.ok(&["rm", "--force", name]);
        assert_eq!(std::fs::read_dir(&precious).expect("it is there").count(), 0, "{name}");
    }
    dock.must_be_empty();
}

fn what_is_kept_goes_on_and_goes_with_its_session(dock: &Dock) {
    let script = "test -e /tmp/mark && echo old; echo run; touch /tmp/mark; read -r line; exit 3";
    dock.start("kept", &["--keep"], &["sh", "-c", script]);
    let id = || dock.wharf.json(&["show", "kept", "--json"])["container"]["id"].clone();
    let runs = |count: usize| {
        let log = || String::from_utf8_lossy(&dock.wharf.log("kept")).matches("run").count();
        assert!(until(|| log() == count), "{} runs", log());
    };
    runs(1);
    let first = id();
    dock.ok(&["write", "kept", "x\n"]);
    assert_eq!(dock.run(&["wait", "kept"]).code, 3);
    // Neither its end, nor a next daemon, nor who clears up takes it away.
    let running = || dock.engine(&["inspect", "-f", "{{.State.Running}}", first.as_str().expect("an id")]);
    assert!(until(|| running() == "false"));
    dock.wharf.ok(&["daemon", "stop"]);
    let cleared = dock.ok(&["gc", "--json"]);
    assert!(!cleared.contains("container"), "{cleared}");
    assert!(dock.ok(&["show", "kept"]).contains("kept for `restart`"));
    dock.ok(&["image", "ls", "-b", dock.backend()]);
    assert_eq!(dock.containers(), 1);
    dock.ok(&["restart", "kept"]);
    runs(2);
    assert_eq!(id(), first);
    assert!(String::from_utf8_lossy(&dock.wharf.log("kept")).contains("old"), "files made inside are there");
    // Also one that was killed.
    dock.ok(&["kill", "kept"]);
    dock.ok(&["restart", "kept"]);
    runs(3);
    assert_eq!((&id(), dock.containers()), (&first, 1));
    dock.ok(&["stop", "kept"]);
    assert_eq!(dock.containers(), 1);
    // One that somebody has removed is made anew.
    dock.engine(&["rm", first.as_str().expect("an id")]);
    dock.ok(&["restart", "kept"]);
    runs(4);
    assert_ne!(id(), first);
    dock.ok(&["kill", "kept"]);
    dock.ok(&["rm", "kept"]);
    assert_eq!(dock.containers(), 0);
}
