//! A long history costs a start and a list nothing that is felt.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use wharf_model::{ExitRecord, Home, Millis, Name, Offset, Reason, SessionId, State};
use wharf_store::{SessionRow, Store};

use crate::ground::Ground;

const SESSIONS: u64 = 20_000;

/// What a session that is over leaves in its directory.
fn write(dir: &Path, ticket: &mut serde_json::Value, id: &SessionId, name: &str, exit: &ExitRecord) {
    ticket["id"] = id.as_str().into();
    ticket["name"] = name.into();
    ticket["dir"] = dir.to_str().unwrap().into();
    fs::write(dir.join(Home::TICKET), ticket.to_string()).unwrap();
    fs::write(dir.join(Home::EXIT), serde_json::to_vec(exit).unwrap()).unwrap();
}

#[test]
fn a_long_history_is_no_load() {
    let ground = Ground::new();
    // One session of our own gives the form of a directory and its ticket.
    ground.start("first", &[], &["true"]);
    ground.run(&["wait", "first"]);
    let mut ticket = ground.ticket("first");
    ground.ok(&["daemon", "stop"]);

    let (store, _) = Store::open(&ground.state().join("store.db")).unwrap();
    let begun = Millis(1_750_000_000_000);
    for i in 0..SESSIONS {
        let (id, name) = (SessionId::new(Millis(begun.0 + i), i), format!("old-{i}"));
        let exit = ExitRecord {
            code: Some(0),
            reason: Reason::Exited,
            started: Millis(begun.0 + i),
            ended: Millis(begun.0 + i + 1),
            log_end: Offset(0),
            ..ExitRecord::default()
        };
        let dir = ground.state().join("sessions").join(id.as_str());
        fs::create_dir(&dir).unwrap();
        // What is in the directories of the many between is read by nobody.
        if i < 10 || i + 2_000 > SESSIONS {
            write(&dir, &mut ticket, &id, &name, &exit);
            symlink(format!("../sessions/{id}"), ground.state().join("names").join(&name)).unwrap();
        }
        store.put(SessionRow {
            id,
            name: name.parse::<Name>().unwrap(),
            group: None,
            labels: std::collections::BTreeMap::new(),
            backend: "local".to_owned(),
            state: State::Exited,
            created: Millis(begun.0 + i),
            run: 1,
            attempts: 0,
            exit: Some(exit),
        });
        if i % 5_000 == 0 {
            store.flush(Duration::from_secs(60));
        }
    }
    store.flush(Duration::from_secs(60));
    drop(store);

    let timed = |args: &[&str]| {
        let begun = Instant::now();
        let out = ground.ok(args);
        (begun.elapsed(), out)
    };
    let (start, _) = timed(&["daemon", "start"]);
    let (list, out) = timed(&["ls", "--json"]);
    println!("ready after {start:?}, list after {list:?}");
    assert!(start < Duration::from_secs(2), "the daemon was ready after {start:?}");
    assert!(list < Duration::from_secs(1), "the list took {list:?}");
    let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(
        (1..=2_000).contains(&listed.as_array().unwrap().len()),
        "a list of {}",
        listed.as_array().unwrap().len()
    );
    // The oldest is still found, by its name and in its place.
    assert_eq!(ground.show("old-0")["exit"]["code"], 0);
    let (create, _) = timed(&["run", "-d", "--name", "new", "--", "cat"]);
    assert!(create < Duration::from_secs(1), "a create took {create:?}");
    // An old name can be taken, and a whole history be cleared.
    ground.start("old-5", &[], &["cat"]);
    assert!(crate::support::is_live(&ground.show("old-5")));
    ground.kill_daemon();
    let (again, _) = timed(&["ls", "--running", "-q"]);
    assert!(again < Duration::from_secs(2), "it was ready after {again:?}");
}
