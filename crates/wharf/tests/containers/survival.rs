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
    gc_removes_containers_that_no_session_needs
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

fn gc_removes_containers_that_no_session_needs(dock: &Dock) {
    dock.start("one", &[], &["sleep", "600"]);
    let shown = dock.wharf.json(&["show", "one", "--json"]);
    let (id, own) =
        (shown["id"].as_str().expect("an id"), shown["container"]["name"].as_str().expect("a name"));
    let label = |key: &str| {
        let value = dock.engine(&["inspect", "-f", &format!("{{{{index .Config.Labels \"{key}\"}}}}"), own]);
        assert!(!value.is_empty(), "{key}");
        format!("{key}={value}")
    };
    let (install, host) = (label("wharf.install"), label("wharf.host"));
    // Two of sessions that nobody knows any more, as after a state directory was restored: one is over, the other runs.
    let unknown = |last: char| {
        let session = format!("{}{last}", &id[..id.len() - 1]);
        (own.replace(id, &session), format!("wharf.session={session}"))
    };
    let others: Vec<char> = "0123456789".chars().filter(|last| !id.ends_with(*last)).take(2).collect();
    let ((over, of_over), (runs, of_running)) = (unknown(others[0]), unknown(others[1]));
    let labels = ["--label", &install, "--label", &host, "--network", "none"];
    dock.engine(&[&["create", "--name", &over, "--label", &of_over][..], &labels, &[IMAGE, "true"]].concat());
    let command = [IMAGE, "sleep", "600"];
    dock.engine(&[&["run", "-d", "--name", &runs, "--label", &of_running][..], &labels, &command].concat());
    let gc = |more: &[&str]| {
        let items: serde_json::Value =
            serde_json::from_str(&dock.ok(&[&["gc", "--json"], more].concat())).expect("JSON");
        let what = |name: &str| {
            let mut items = items.as_array().expect("a list").iter();
            let found = items.find(|item| item["thing"].as_str().is_some_and(|thing| thing.contains(name)));
            found.map(|item| item["what"].as_str().expect("a word").to_owned())
        };
        [what(&over), what(&runs), what(own)]
    };
    let expected = [Some("removed".to_owned()), Some("kept".to_owned()), None];
    assert_eq!(gc(&["--dry-run"]), expected);
    assert_eq!(dock.containers(), 3, "a dry run removes nothing");
    assert_eq!(gc(&[]), expected);
    assert_eq!(dock.containers(), 2);
    assert!(is_live(&dock.wharf.json(&["show", "one", "--json"])));
    dock.engine(&["rm", "-f", &runs]);
    dock.ok(&["kill", "one"]);
    dock.must_be_empty();
}
