//! A store, a ticket and a configuration that cannot be read.

use std::fs;
use std::path::Path;

use crate::ground::Ground;
use crate::support::Wharf;

/// How a file is spoilt, and what for.
type Spoil = (&'static str, fn(&Path));

const WAYS: [Spoil; 6] = [
    ("cut in its middle", |path| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2 + 1).unwrap();
    }),
    ("zeroed", |path| fs::write(path, vec![0; fs::metadata(path).unwrap().len() as usize]).unwrap()),
    ("garbage", |path| fs::write(path, b"garbage ".repeat(4096)).unwrap()),
    ("another program's", |path| {
        fs::remove_file(path).unwrap();
        sqlite(path, "CREATE TABLE sessions (x); INSERT INTO sessions VALUES (1);");
    }),
    ("a newer schema", |path| sqlite(path, "PRAGMA user_version = 999; CREATE TABLE later (x);")),
    ("zeroed but for its head", |path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[100..].fill(0);
        fs::write(path, bytes).unwrap();
    }),
];

fn sqlite(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap();
}

fn asides(wharf: &Wharf) -> Vec<String> {
    let names =
        fs::read_dir(wharf.state()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let bad = names.filter(|name| name.starts_with("store.db.bad-"));
    bad.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect()
}

#[test]
fn a_store_that_cannot_be_read_is_kept_aside_and_built_anew() {
    for (how, spoil) in WAYS {
        let ground = Ground::new();
        ground.start("live", &["-g", "group", "-l", "k=v"], &["cat"]);
        ground.start("over", &[], &["sh", "-c", "echo said; exit 4"]);
        ground.start("old", &[], &["cat"]);
        ground.ok(&["rename", "old", "renamed"]);
        assert_eq!(ground.run(&["wait", "over"]).code, 4);
        let pid = ground.pid("live");
        ground.ok(&["daemon", "stop"]);
        let store = ground.state().join("store.db");
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(ground.state().join(format!("store.db{suffix}")));
        }
        spoil(&store);
        let spoilt = fs::read(&store).unwrap();

        let states = ground.states();
        let expected = [("live", "running"), ("over", "exited"), ("renamed", "running")];
        let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
        assert_eq!(states.into_iter().collect::<Vec<_>>(), expected, "{how}");
        let live = ground.show("live");
        assert_eq!(
            (&live["pid"], &live["group"], &live["labels"]["k"]),
            (&pid.into(), &"group".into(), &"v".into()),
            "{how}"
        );
        assert_eq!(ground.run(&["wait", "over"]).code, 4, "{how}");
        assert_eq!(ground.log("over"), b"said\r\n", "{how}");
        let kept = asides(&ground);
        assert_eq!(kept.len(), 1, "{how}: {kept:?}");
        assert!(fs::read(ground.state().join(&kept[0])).unwrap() == spoilt, "{how}: it was changed");
        // The new one is good: another start keeps it.
        ground.kill_daemon();
        assert_eq!(ground.states().len(), 3, "{how}");
        assert_eq!(asides(&ground).len(), 1, "{how}");
        ground.ok(&["write", "live", "hello\r"]);
        ground.until_log("live", "hello\r\nhello");
    }
}

#[test]
fn a_store_that_is_deleted_under_the_daemon_loses_no_session() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(ground.state().join(file));
    }
    ground.start("two", &[], &["sh", "-c", "exit 3"]);
    assert_eq!(ground.run(&["wait", "two"]).code, 3);
    ground.kill_daemon();
    let states = ground.states();
    assert_eq!((&*states["one"], &*states["two"]), ("running", "exited"));
    assert_eq!(ground.run(&["wait", "two"]).code, 3);
}

#[test]
fn a_ticket_that_cannot_be_read_is_told_and_touches_no_other_session() {
    for garbage in [&b"garbage"[..], b"", b"{\"id\":1}", b"\xff\xfe"] {
        let ground = Ground::new();
        ground.start("one", &[], &["cat"]);
        ground.start("bad", &[], &["cat"]);
        let (pid, bad) = (ground.pid("one"), ground.pid("bad"));
        let good = fs::read(ground.state().join("names/bad/ticket.json")).unwrap();
        let dir = ground.show("bad")["path"].as_str().unwrap().to_owned();
        ground.kill_daemon();
        fs::write(Path::new(&dir).join("ticket.json"), garbage).unwrap();

        assert_eq!(ground.pid("one"), pid);
        assert!(ground.runs("one"));
        let doctor = ground.run(&["doctor"]);
        let gc = ground.run(&["gc"]);
        assert_eq!(gc.code, 0, "{gc:#?}");
        assert!(gc.out.contains(&dir) && gc.out.contains("kept"), "gc says nothing of it: {gc:#?}");
        assert_eq!(doctor.code, 1, "doctor says nothing of it: {doctor:#?}");
        // Its name is not given away while its command may run, and it is as it was once the ticket is.
        let ran = ground.run(&["run", "-d", "--name", "bad", "--", "true"]);
        assert_eq!(ran.code, 4, "{ran:#?}");
        ground.kill_daemon();
        fs::write(Path::new(&dir).join("ticket.json"), good).unwrap();
        assert_eq!((ground.pid("one"), ground.pid("bad")), (pid, bad));
    }
}

#[test]
fn a_wrong_configuration_is_named_and_stops_only_what_needs_it() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let file = ground.home().join(".config/wharf/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    for (text, place) in [("backend = \"local\"\ndetach_keys = [", ":2:"), ("\n\nbackend = 5\n", ":3:11: ")] {
        fs::write(&file, text).unwrap();
        for args in [&["run", "-d", "--", "true"][..], &["attach", "one"]] {
            let ran = ground.run(args);
            assert_eq!(ran.code, 2, "{ran:#?}");
            assert!(ran.err.contains("config.toml") && ran.err.contains(place), "{ran:#?}");
            assert!(ran.err.contains("hint: "), "{ran:#?}");
        }
        let doctor = ground.run(&["doctor"]);
        assert!(doctor.code == 1 && doctor.out.contains(place), "{doctor:#?}");
        assert!(ground.runs("one"));
        ground.ok(&["write", "one", "hello\r"]);
    }
    fs::write(&file, b"\xff\xfe").unwrap();
    let ran = ground.run(&["run", "-d", "--", "true"]);
    assert!(ran.code != 0 && ran.err.contains("config.toml"), "{ran:#?}");
    ground.ok(&["stop", "-t", "1", "one"]);
}
