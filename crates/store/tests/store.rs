//! The store: what is written is found again, and a bad file is kept and replaced.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall say where")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use wharf_model::{ExitRecord, Millis, Offset, Reason, SessionId, State};
use wharf_store::{Opened, SessionRow, Store};

const FLUSH_TIMEOUT: Duration = Duration::from_secs(20);

fn id(number: u64) -> SessionId {
    SessionId::new(Millis(1_700_000_000_000 + number), number)
}

fn row(number: u64, state: State) -> SessionRow {
    SessionRow {
        id: id(number),
        name: format!("s-{number}").parse().unwrap(),
        group: Some("team".parse().unwrap()),
        labels: [("role".to_owned(), "x".to_owned())].into(),
        backend: "fake".to_owned(),
        state,
        created: Millis(number),
        run: 2,
        attempts: 1,
        exit: state.is_over().then(|| ExitRecord {
            code: Some(3),
            signal: None,
            oom: false,
            limit: None,
            reason: Reason::Exited,
            by: Some("me".to_owned()),
            started: Millis(1),
            ended: Millis(1_000 + number),
            log_end: Offset(5),
            leftovers: 0,
            survivors: 0,
            unsure: false,
        }),
    }
}

fn fill(path: &Path, count: u64) {
    let (store, _) = Store::open(path).unwrap();
    for number in 0..count {
        store.put(row(number, if number % 2 == 0 { State::Exited } else { State::Running }));
    }
}

/// A bad file is put aside whole, and a new store works in its place.
fn is_replaced(path: &Path, bad: &[u8]) -> PathBuf {
    let (store, opened) = Store::open(path).unwrap();
    let Opened::Replaced { aside, .. } = opened else { panic!("{opened:?}") };
    assert_eq!(fs::read(&aside).unwrap(), bad, "the bad file is kept as it was");
    assert!(store.over().unwrap().is_empty());
    store.put(row(1, State::Exited));
    assert_eq!(store.over().unwrap(), vec![id(1)]);
    aside
}

#[test]
fn rows_are_found_again_in_every_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let (store, opened) = Store::open(&path).unwrap();
    assert_eq!(opened, Opened::Fresh);
    for number in 0..10 {
        store.put(row(number, if number < 6 { State::Exited } else { State::Running }));
    }
    store.put(row(9, State::Lost));
    store.remove(&id(0));
    store.flush(FLUSH_TIMEOUT);
    drop(store);
    let (store, opened) = Store::open(&path).unwrap();
    assert_eq!(opened, Opened::Ready);
    assert_eq!(store.by_id(&id(3)).unwrap(), Some(row(3, State::Exited)));
    assert_eq!(store.by_id(&id(0)).unwrap(), None);
    assert_eq!(store.by_name("s-7").unwrap(), Some(row(7, State::Running)));
    assert_eq!(store.by_name("nobody").unwrap(), None);
    assert_eq!(store.over().unwrap().len(), 6);
    assert_eq!(store.live().unwrap().len(), 3);
    let newest: Vec<SessionId> = store.newest_over(2).unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(newest, vec![id(9), id(5)]);
    let oldest: Vec<SessionId> =
        store.over_before(Millis(1_003), 10).unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(oldest, vec![id(1), id(2)]);
    assert_eq!(store.by_prefix(&id(3).as_str()[..15]).unwrap().len(), 1);
    assert_eq!(
        store.by_prefix(&id(3).as_str()[..6]).unwrap().len(),
        2,
        "two are enough to say that it is not one"
    );
}

#[test]
fn the_newest_session_of_a_name_is_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&dir.path().join("store.db")).unwrap();
    for number in 1..4 {
        store.put(SessionRow { name: "same".parse().unwrap(), ..row(number, State::Exited) });
    }
    assert_eq!(store.by_name("same").unwrap().unwrap().id, id(3));
}

#[test]
fn the_file_is_private_whatever_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let (store, _) = Store::open(&path).unwrap();
    store.put(row(1, State::Exited));
    store.flush(FLUSH_TIMEOUT);
    for file in fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
}

#[test]
fn garbage_zeros_and_a_cut_file_are_kept_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    for (case, spoil) in [
        ("garbage", (|bytes: &mut Vec<u8>| bytes.iter_mut().for_each(|byte| *byte = 7)) as fn(&mut Vec<u8>)),
        ("zeros", |bytes| bytes.fill(0)),
        ("zeroed pages", |bytes| bytes[4096..].fill(0)),
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("cut within the first page", |bytes| bytes.truncate(1_000)),
        ("a text", |bytes| *bytes = b"not a database at all".to_vec()),
    ] {
        let _ = fs::remove_file(&path);
        fill(&path, 500);
        let mut bytes = fs::read(&path).unwrap();
        assert!(bytes.len() > 3 * 4096, "the case needs some pages");
        spoil(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let aside = is_replaced(&path, &bytes);
        assert!(aside.file_name().unwrap().to_str().unwrap().starts_with("store.db.bad-"), "{case}");
    }
}

#[test]
fn an_empty_file_is_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    fs::write(&path, "").unwrap();
    assert_eq!(Store::open(&path).unwrap().1, Opened::Fresh);
}

#[test]
fn a_store_of_a_newer_version_is_kept_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    fill(&path, 10);
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 4_000).unwrap();
    newer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(newer);
    let bytes = fs::read(&path).unwrap();
    let aside = is_replaced(&path, &bytes);
    let kept = Connection::open(aside).unwrap();
    let count: i64 = kept.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 10);
}

#[test]
fn another_programs_database_is_kept_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE sessions (something TEXT); PRAGMA user_version = 1;").unwrap();
    drop(other);
    let (_, opened) = Store::open(&path).unwrap();
    assert!(matches!(opened, Opened::Replaced { .. }), "{opened:?}");
}

#[test]
fn the_store_of_version_1_opens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    Connection::open(&path).unwrap().execute_batch(include_str!("fixtures/v1.sql")).unwrap();
    let (store, opened) = Store::open(&path).unwrap();
    assert_eq!(opened, Opened::Ready);
    let lives = &store.live().unwrap()[0];
    assert_eq!((lives.name.as_str(), lives.run, lives.attempts), ("lives", 2, 1));
    assert_eq!(lives.labels["role"], "x");
    let ended = store.by_name("ended").unwrap().unwrap();
    assert_eq!((ended.state, ended.exit.unwrap().code), (State::Exited, Some(3)));
}

#[test]
fn a_write_never_waits_and_the_last_one_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let (store, _) = Store::open(&path).unwrap();
    // Another process holds the write lock for a while.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    for run in 1..=1_000 {
        store.put(SessionRow { run, ..row(1, State::Running) });
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    let until = Instant::now() + FLUSH_TIMEOUT;
    while store.by_id(&id(1)).unwrap().is_none_or(|row| row.run != 1_000) {
        assert!(Instant::now() < until, "it was never written");
        store.flush(Duration::from_millis(100));
    }
}

#[test]
fn a_missing_directory_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("no/such/store.db");
    let Err(error) = Store::open(&path) else { panic!("it opened") };
    assert!(error.to_string().contains("no/such/store.db"), "{error}");
}
