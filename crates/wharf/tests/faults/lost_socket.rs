//! The files of a session that lives are gone or are those of yesterday: reality beats records.

use std::fs;
use std::process::Command;

use crate::ground::Ground;
use crate::support::{is_live, lives, until};

const SCRIPT: &str = "echo ready; while read x; do echo \"<$x>\"; [ \"$x\" = end ] && exit 7; done";

#[test]
fn a_holder_whose_socket_was_deleted_is_reached_again() {
    let ground = Ground::new();
    ground.start("one", &[], &["sh", "-c", SCRIPT]);
    ground.until_log("one", "ready");
    let pid = ground.pid("one");
    let socket = ground.state().join("names/one/sock");
    fs::remove_file(&socket).unwrap();
    // By the command line itself.
    ground.ok(&["write", "one", "first\r"]);
    ground.until_log("one", "<first>");
    // By the next daemon, also where something else is in its place.
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "no socket").unwrap();
    ground.kill_daemon();
    assert!(until(|| is_live(&ground.show("one"))), "{}", ground.show("one"));
    assert_eq!(ground.pid("one"), pid);
    fs::remove_file(&socket).unwrap();
    ground.kill_daemon();
    ground.ok(&["stop", "-t", "1", "one"]);
    assert!(!lives(pid));
}

#[test]
fn sessions_are_reached_after_the_state_was_restored_from_a_backup() {
    let ground = Ground::new();
    for name in ["one", "two"] {
        ground.start(name, &[], &["sh", "-c", SCRIPT]);
        ground.until_log(name, "ready");
    }
    let pids = [ground.pid("one"), ground.pid("two")];
    let (state, backup) = (ground.state(), ground.home().join("backup"));
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
        assert!(done.success(), "cannot copy {} to {}", from.display(), to.display());
    };
    copy(&state, &backup);
    ground.kill_daemon();
    // As a backup is: without sockets, or with some that nobody serves.
    fs::remove_dir_all(&state).unwrap();
    copy(&backup, &state);
    fs::remove_file(state.join("names/one/sock")).unwrap();
    for (name, pid) in ["one", "two"].into_iter().zip(pids) {
        assert!(until(|| is_live(&ground.show(name))), "{}", ground.show(name));
        assert_eq!(ground.pid(name), pid);
        ground.ok(&["write", name, "again\r"]);
        ground.until_log(name, "<again>");
        ground.ok(&["write", name, "end\r"]);
        assert_eq!(ground.run(&["wait", name]).code, 7, "{name}");
    }
}

#[test]
fn a_session_that_runs_is_listed_though_no_directory_speaks_of_it() {
    let ground = Ground::new();
    for name in ["kept", "one"] {
        ground.start(name, &[], &["sh", "-c", SCRIPT]);
        ground.until_log(name, "ready");
    }
    let (pid, id) = (ground.pid("one"), ground.show("one")["id"].as_str().unwrap().to_owned());
    ground.kill_daemon();
    // As a backup has it that is older than the session.
    fs::remove_dir_all(ground.state().join("sessions").join(&id)).unwrap();
    fs::remove_file(ground.state().join("names/one")).unwrap();
    for store in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(ground.state().join(store));
    }
    assert!(until(|| ground.runs("one")), "{:?}", ground.states());
    assert!(ground.runs("kept"));
    let shown = ground.show("one");
    assert_eq!((&shown["id"], ground.pid("one")), (&serde_json::json!(id), pid), "{shown}");
    ground.ok(&["write", "one", "again\r"]);
    ground.until_log("one", "<again>");
    ground.ok(&["stop", "-t", "1", "one"]);
    assert!(!lives(pid));
    assert_eq!(ground.show("one")["state"], "exited");
}

#[test]
fn a_doctor_finds_what_runs_without_its_files() {
    let ground = Ground::new();
    for name in ["kept", "one"] {
        ground.start(name, &[], &["sh", "-c", SCRIPT]);
        ground.until_log(name, "ready");
    }
    let sessions = || {
        let ran = ground.run(&["doctor", "--json"]);
        let checks: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        checks.as_array().unwrap().iter().find(|check| check["name"] == "sessions").unwrap().clone()
    };
    assert_eq!(sessions()["ok"], true, "{}", sessions());
    let (pid, id) = (ground.pid("one"), ground.show("one")["id"].as_str().unwrap().to_owned());
    let dir = ground.state().join("sessions").join(&id);
    fs::remove_dir_all(&dir).unwrap();
    // The daemon that started it has seen nothing of that.
    let check = sessions();
    assert_eq!(check["ok"], false, "{check}");
    let detail = check["detail"].as_str().unwrap();
    assert!(detail.contains("one") && !detail.contains("kept"), "{check}");
    // As it says, the next daemon makes the files again.
    assert!(check["hint"].as_str().unwrap().contains("`wharf daemon restart`"), "{check}");
    ground.ok(&["daemon", "restart"]);
    assert!(until(|| sessions()["ok"] == true), "{}", sessions());
    assert!(until(|| ground.runs("one")), "{:?}", ground.states());
    assert!(dir.exists());
    assert_eq!(ground.pid("one"), pid);
    ground.ok(&["stop", "-t", "1", "one"]);
    assert!(!lives(pid));
}
