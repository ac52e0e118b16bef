//! Tests what a second engine finds: live, ended and lost sessions, a bad store, a hung backend.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use wharf_backend::faults::{Fault, Op, Times};
use wharf_engine::{Engine, Failure, Filter};
use wharf_model::{Code, ExitRecord, GivenSecret, Home, Reason, State};

use crate::place::{Place, named, output, spec, state};

#[tokio::test]
async fn another_engine_finds_everything_again() {
    let place = Place::new();
    let engine = place.open().await;
    let alive = engine.start(named("alive", &["fake:echo"])).await.unwrap();
    let ended = engine.start(named("ended", &["fake:sleep"])).await.unwrap();
    let lost = engine.start(named("lost", &["fake:sleep"])).await.unwrap();
    engine.start(named("before", &["fake:exit", "4"])).await.unwrap();
    engine.session("before").await.unwrap().wait().await.unwrap();
    engine.close().await;
    drop(engine);
    // While nobody looks, one ends and one is lost.
    place.fake.exit(&ended.id, 5);
    place.fake.lose(&lost.id);
    std::fs::remove_file(place.home().name(&alive.name)).unwrap();

    let engine = place.open().await;
    let again = engine.find("alive").await.unwrap();
    assert_eq!((again.state, &again.id, again.pid), (State::Running, &alive.id, alive.pid));
    engine.session("alive").await.unwrap().write(b"still here\n", Duration::from_secs(1)).await.unwrap();
    assert_eq!(output(&engine, "alive").await, "still here\n");
    assert!(place.home().name(&alive.name).exists(), "the name's link was made again");
    assert_eq!(engine.find("ended").await.unwrap().exit.as_ref().unwrap().code, Some(5));
    let lost = engine.find("lost").await.unwrap();
    assert_eq!((lost.state, lost.exit.as_ref().unwrap().reason), (State::Lost, Reason::Lost));
    assert_eq!(engine.session("lost").await.unwrap().wait().await.unwrap().reason, Reason::Lost);
    assert_eq!(engine.find("before").await.unwrap().exit.as_ref().unwrap().code, Some(4));
    assert_eq!(engine.list(&Filter::default()).len(), 4);
    assert_eq!(place.fake.starts(), 4, "nothing was started a second time");
    engine.close().await;
}

#[tokio::test]
async fn a_second_engine_is_told_who_has_the_instance() {
    let place = Place::new();
    let engine = place.open().await;
    let Err(failure) = Engine::open(place.config()).await else { panic!("two engines own one instance") };
    assert_eq!(failure.code, Code::Locked);
    assert!(failure.message.contains(&std::process::id().to_string()), "{}", failure.message);
    engine.close().await;
    place.open().await.close().await;
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_kept_and_built_anew() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("alive", &["fake:sleep"])).await.unwrap();
    engine.start(named("ended", &["fake:exit", "6"])).await.unwrap();
    engine.session("ended").await.unwrap().wait().await.unwrap();
    engine.close().await;
    drop(engine);
    std::fs::write(place.home().store(), vec![7; 8192]).unwrap();

    let engine = place.open().await;
    assert_eq!(engine.find("alive").await.unwrap().state, State::Running);
    assert_eq!(engine.find("ended").await.unwrap().exit.as_ref().unwrap().code, Some(6));
    let names = std::fs::read_dir(place.home().state()).unwrap().map(|e| e.unwrap().file_name());
    assert!(names.into_iter().any(|name| name.to_string_lossy().starts_with("store.db.bad-")));
    assert_eq!(place.fake.starts(), 2);
    engine.close().await;
}

#[tokio::test]
async fn a_hung_backend_delays_opening_by_no_more_than_allowed() {
    let place = Place::new();
    let engine = place.open().await;
    for _ in 0..5 {
        engine.start(spec(&["fake:sleep"])).await.unwrap();
    }
    engine.close().await;
    drop(engine);
    place.faults.inject(Op::Adopt, Fault::Hang, Times::Always);
    place.faults.inject(Op::List, Fault::Hang, Times::Always);
    let begun = Instant::now();
    let engine = place.open().await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let sessions = engine.list(&Filter::default());
    assert_eq!(sessions.len(), 5);
    assert!(sessions.iter().all(|session| session.state == State::Unknown));
    place.faults.clear();
    for session in sessions {
        state(&engine, session.id.as_str(), State::Running).await;
    }
    engine.close().await;
}

#[tokio::test]
async fn a_thousand_live_sessions_are_found() {
    let place = Place::new();
    let engine = place.open().await;
    for _ in 0..1_000 {
        engine.start(spec(&["fake:sleep"])).await.unwrap();
    }
    engine.close().await;
    drop(engine);
    let engine = place.open().await;
    assert_eq!(engine.live(), 1_000);
    // Opening waits for them only so long; how long it takes is the benchmark's to say.
    for session in engine.list(&Filter::default()) {
        state(&engine, session.name.as_str(), State::Running).await;
    }
    engine.close().await;
}

#[tokio::test]
async fn a_session_without_a_directory_is_taken_in() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    engine.close().await;
    drop(engine);
    std::fs::remove_dir_all(place.home().session(&session.id)).unwrap();
    let engine = place.open().await;
    state(&engine, "a", State::Running).await;
    engine.close().await;
}

#[tokio::test]
async fn a_directory_without_a_ticket_is_left_alone_and_told_of() {
    let place = Place::new();
    place.open().await.close().await;
    let odd = place.home().sessions().join("0123456789abcdef");
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("ticket.json"), "{ not json").unwrap();
    let engine = place.open().await;
    assert!(engine.list(&Filter::default()).is_empty());
    let items = engine.gc(false, None).await.unwrap();
    assert!(
        items.iter().any(|item| item.what == "kept" && item.thing.contains("0123456789abcdef")),
        "{items:?}"
    );
    assert!(odd.exists());
    engine.close().await;
}

#[tokio::test]
async fn everything_on_disk_is_the_users_alone() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    engine.session("a").await.unwrap().rename("b".parse().unwrap()).await.unwrap();
    engine.close().await;
    let home = place.home();
    for dir in [home.state().to_owned(), home.sessions(), home.names()] {
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{dir:?}");
    }
    let id = engine.find("b").await.unwrap().id.clone();
    for file in [home.store(), home.lock(), home.session(&id).join("ticket.json")] {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn no_secret_is_in_the_store() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:sleep", "argv-s3cret"]);
    spec.env.changes = vec![wharf_model::Change::Set("KEY".into(), "env-s3cret".into())];
    spec.prompt = Some("prompt-s3cret".into());
    engine.start(spec).await.unwrap();
    engine.close().await;
    for suffix in ["", "-wal"] {
        let path = format!("{}{suffix}", place.home().store().display());
        let bytes = std::fs::read(path).unwrap_or_default();
        assert!(!bytes.windows(6).any(|window| window == b"s3cret"));
    }
}

#[tokio::test]
async fn a_failure_to_list_ends_nothing() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    engine.close().await;
    drop(engine);
    std::fs::remove_dir_all(place.home().session(&session.id)).unwrap();
    place.faults.inject(Op::List, Fault::Fail(Failure::new(Code::Unreachable, "down")), Times::Once);
    place.open().await.close().await;
    assert_eq!(place.fake.live().len(), 1);
    let engine = place.open().await;
    state(&engine, "a", State::Running).await;
    engine.close().await;
}

#[tokio::test]
async fn secrets_of_what_ended_while_nobody_was_there_are_taken_away() {
    let place = Place::new();
    let engine = place.open().await;
    let secret = GivenSecret { name: "key".into(), from: "env:X".into(), value: Some("hidden".into()) };
    let mut wanted = named("a", &["fake:sleep"]);
    wanted.secrets.push(secret);
    let session = engine.start(wanted).await.unwrap();
    let left = place.home().session(&session.id).join(Home::SECRETS);
    assert!(left.join("key").exists());
    engine.close().await;
    drop(engine);
    // Its holder has written its record, and a start was broken off before it had a ticket.
    let exit = serde_json::to_vec(&ExitRecord { code: Some(0), ..ExitRecord::default() }).unwrap();
    std::fs::write(place.home().session(&session.id).join(Home::EXIT), exit).unwrap();
    let broken_off = place.home().sessions().join("0000000000000000").join(Home::SECRETS);
    std::fs::create_dir_all(&broken_off).unwrap();
    std::fs::write(broken_off.join("key"), "hidden").unwrap();

    let engine = place.open().await;
    assert_eq!(engine.find("a").await.unwrap().exit.as_ref().unwrap().code, Some(0));
    assert!(!left.exists() && !broken_off.exists());
    assert!(broken_off.parent().unwrap().exists(), "all else is left alone");
    engine.close().await;
}

#[tokio::test]
async fn what_a_backend_says_of_a_session_does_not_decide_whether_it_is_looked_for() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    engine.close().await;
    drop(engine);
    // The words that a session has which was not looked for yet.
    let words = "it is being looked for";
    place.faults.inject(Op::Adopt, Fault::Fail(Failure::new(Code::Unreachable, words)), Times::Always);
    let mut config = place.config();
    config.timeouts.settle = Duration::from_secs(60);
    let engine = tokio::time::timeout(Duration::from_secs(20), Engine::open(config)).await;
    let engine = engine.expect("what was looked for is not waited for").unwrap();
    assert_eq!(engine.find("a").await.unwrap().detail.as_deref(), Some(words));
    engine.close().await;
}
