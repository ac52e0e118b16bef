//! What a power cut leaves: files that were written a moment ago and are empty or gone. Nothing is synced for each session, so
//! this may happen; nothing false may come of it.

use std::fs;

use crate::ground::Ground;
use crate::support::{kill, lives, until};

#[test]
fn records_that_a_power_cut_took_are_told_and_nothing_is_made_up() {
    let ground = Ground::new();
    for name in ["kept", "exit", "ticket"] {
        ground.start(name, &[], &["sh", "-c", "echo ready; exec sleep 1000"]);
        ground.until_log(name, "ready");
    }
    ground.ok(&["stop", "-t", "1", "exit"]);
    let dirs = ["kept", "exit", "ticket"]
        .map(|name| fs::canonicalize(ground.state().join("names").join(name)).unwrap());
    let processes: Vec<i32> =
        ["kept", "ticket"].into_iter().flat_map(|name| [ground.holder(name), ground.pid(name)]).collect();
    // The machine goes down with everything on it, and what was not on the disk yet is gone.
    ground.kill_daemon();
    processes.iter().copied().for_each(kill);
    assert!(until(|| !processes.iter().any(|pid| lives(*pid))));
    fs::write(dirs[1].join("exit.json"), "").unwrap();
    fs::write(dirs[2].join("ticket.json"), "").unwrap();
    for store in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(ground.state().join(store));
    }

    let states = ground.states();
    assert_eq!((&*states["kept"], &*states["exit"]), ("lost", "lost"), "{states:?}");
    assert_eq!(states.get("ticket"), None, "{states:?}");
    for name in ["kept", "exit"] {
        ground.until_log(name, "ready");
    }
    // What cannot be read is kept, and said to be there.
    let collected = ground.ok(&["gc"]);
    assert!(collected.contains(dirs[2].to_str().unwrap()), "{collected}");
    assert!(dirs[2].join("log").is_dir());
    let log = fs::read_to_string(ground.state().join("daemon.log")).unwrap();
    assert!(log.contains("a session's ticket cannot be read"), "{log}");
    // A name is free for the next, whoever had it.
    ground.ok(&["restart", "kept"]);
    assert!(until(|| ground.runs("kept")));
}
