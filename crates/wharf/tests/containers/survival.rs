//! A daemon that dies takes no container with it, no byte and no message.

use crate::dock::{Dock, on_both};
use crate::engine::IMAGE;
use crate::support::{is_live, until};

on_both! {
    a_killed_daemon_loses_nothing
    what_ends_while_nobody_looks_is_known
    what_ends_while_nobody_looks_leaves_no_container
    a_start_that_is_cut_off_leaves_no_container
    a_session_that_a_backup_does_not_have_is_unknown_and_is_killed
}

fn a_killed_daemon_loses_nothing(dock: &Dock) {
    let script = "i=0; while :; do echo line $i; i=$((i + 1)); test -e go && break; done; read -r x; echo typed $x $i; exit 5";
    dock.start("long", &["-v", ".", "--no-tty"], &["sh", "-c", script]);
    for round in 0..5 {
        let seen = dock.wharf.log("long").len();
        dock.wharf.kill_daemon();
        assert!(until(|| dock.wharf.log("long").len() > seen), "it prints on without a daemon");
        let shown = || dock.wharf.json(&["show", "long", "--json"]);
        assert!(until(|| is_live(&shown())), "round {round}: {}", shown());
    }
    std::fs::write(dock.wharf.home().join("go"), "").expect("a file");
    dock.ok(&["write", "long", "after all\n"]);
    assert_eq!(dock.run(&["wait", "long"]).code, 5);
    let log = String::from_utf8(dock.wharf.log("long")).expect("UTF-8");
    let mut lines = log.lines();
    let last = lines.next_back().expect("a last line");
    let mut count = 0;
    for (number, line) in lines.enumerate() {
        assert_eq!(line, format!("line {number}"));
        count = number + 1;
    }
    assert_eq!(last, format!("typed after all {count}"));
    dock.must_be_empty();
}

fn what_ends_while_nobody_looks_is_known(dock: &Dock) {
    dock.start(
        "short",
        &["-v", "."],
        &["sh", "-c", "while ! test -e go; do sleep 0.02; done; echo last; exit 9"],
    );
    dock.wharf.kill_daemon();
    std::fs::write(dock.wharf.home().join("go"), "").expect("a file");
    dock.wharf.until_log("short", "last");
    assert_eq!(dock.run(&["wait", "short"]).code, 9);
    dock.ok(&["rm", "short"]);
    dock.must_be_empty();
}

fn what_ends_while_nobody_looks_leaves_no_container(dock: &Dock) {
    dock.start("short", &["-v", "."], &["sh", "-c", "while ! test -e go; do sleep 0.02; done; echo last"]);
    dock.wharf.kill_daemon();
    std::fs::write(dock.wharf.home().join("go"), "").expect("a file");
    dock.wharf.until_log("short", "last");
    let ended = dock.wharf.state().join("names/short/exit.json");
    assert!(until(|| ended.exists()), "its holder leaves a record");
    // The next daemon finds it over, and clears up; nobody has to remove the session for that.
    dock.ok(&["ls"]);
    dock.must_be_empty();
    dock.ok(&["rm", "short"]);
}

fn a_start_that_is_cut_off_leaves_no_container(dock: &Dock) {
    dock.ok(&["ls"]);
    let place =
        ["run", "-d", "--name", "cut", "-b", dock.engine_name(), "--image", IMAGE, "--network", "none"];
    // It would run for long: one that ends at once may come and go between two looks.
    let starting = dock.command(&[&place[..], &["--", "sleep", "600"]].concat()).spawn();
    let mut starting = starting.expect("wharf runs");
    assert!(until(|| dock.containers() > 0), "it comes to a container");
    dock.wharf.kill_daemon();
    starting.wait().expect("it ends");
    // The kill may have come after the start: then it is a session like any other.
    let removed = dock.run(&["rm", "--force", "cut"]);
    assert!(matches!(removed.code, 0 | 3), "{removed:#?}");
    dock.must_be_empty();
}

fn a_session_that_a_backup_does_not_have_is_unknown_and_is_killed(dock: &Dock) {
    for with_store in [true, false] {
        dock.start("one", &[], &["sleep", "600"]);
        let id = dock.wharf.json(&["show", "one", "--json"])["id"].as_str().expect("an id").to_owned();
        dock.wharf.kill_daemon();
        std::fs::remove_dir_all(dock.wharf.state().join("sessions").join(&id)).expect("its directory");
        std::fs::remove_file(dock.wharf.state().join("names/one")).expect("its name");
        if !with_store {
            for store in ["store.db", "store.db-wal", "store.db-shm"] {
                let _ = std::fs::remove_file(dock.wharf.state().join(store));
            }
        }
        // This starts the next daemon, with the engine in its variables.
        let all: serde_json::Value = serde_json::from_str(&dock.ok(&["ls", "--json"])).expect("JSON");
        assert_eq!((&all[0]["id"], &all[0]["state"]), (&serde_json::json!(id), &"unknown".into()), "{all}");
        assert_eq!(dock.containers(), 1, "nothing is ended that is unknown");
        dock.ok(&["kill", "one"]);
        dock.must_be_empty();
        let over = dock.wharf.json(&["show", "one", "--json"]);
        assert_eq!(over["state"], "exited", "{over}");
        dock.ok(&["rm", "one"]);
    }
}
