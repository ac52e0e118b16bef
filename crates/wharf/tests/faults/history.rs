//! A long history costs a start and a list nothing that is felt.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use wharf_model::{ExitRecord, Home, Millis, Name, Offset, Reason, SessionId, State};
use wharf_store::{Row, Store};

use crate::ground::Ground;

const SESSIONS: u64 = 20_000;

#[test]
fn a_long_history_is_no_load() {
    let ground = Ground::new();
    // One session of our own gives the form of a directory and its ticket.
    ground.start("first", &[], &["true"]);
    ground.run(&["wait", "first"]);
    let first = ground.show("first");
    let template = ground.ticket("first").to_string();
    let template_id = first["id"].as_str().unwrap().to_owned();
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
        let ticket = template.replace(&template_id, id.as_str()).replace("\"first\"", &format!("\"{name}\""));
        fs::write(dir.join(Home::TICKET), ticket).unwrap();
        fs::write(dir.join(Home::EXIT), serde_json::to_vec(&exit).unwrap()).unwrap();
        symlink(format!("../sessions/{id}"), ground.state().join("names").join(&name)).unwrap();
        store.put(Row {
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
    assert!((1..=2_000).contains(&listed.as_array().unwrap().len()), "a list of {}", listed.as_array().unwrap().len());
    // The oldest is still found, by its name and in its place.
    assert_eq!(ground.show("old-0")["exit"]["code"], 0);
    let (create, _) = timed(&["run", "-d", "--name", "new", "--", "cat"]);
    assert!(create < Duration::from_secs(1), "a create took {create:?}");
    // An old name can be taken, and a whole history be cleared.
    ground.start("old-5", &[], &["cat"]);
    assert_eq!(ground.show("old-5")["state"], "running");
    ground.kill_daemon();
    let (again, _) = timed(&["ls", "--running", "-q"]);
    assert!(again < Duration::from_secs(2), "it was ready after {again:?}");
}
