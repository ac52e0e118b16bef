//! Tests start, write, stop, kill, wait, restart and remove on the fake backend.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use wharf_backend::faults::{Fault, Op, Times};
use wharf_engine::{Engine, Failure, Filter};
use wharf_model::{Change, Code, Environment, EnvironmentBase, Home, Offset, Reason, Size, State, Text};

use crate::place::{Place, named, output, spec, state};

#[tokio::test]
async fn a_session_starts_is_listed_written_to_and_stopped() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:echo"])).await.unwrap();
    assert_eq!((session.state, session.run), (State::Running, 1));
    assert!(session.pid.is_some());
    assert_eq!(engine.list(&Filter::default()).len(), 1);
    assert_eq!(engine.live(), 1);

    engine.session("a").await.unwrap().write(b"hello\n", Duration::from_secs(1)).await.unwrap();
    assert_eq!(place.fake.input(&session.id), b"hello\n");
    assert_eq!(output(&engine, "a").await, "hello\n");
    engine.session("a").await.unwrap().resize(Size { cols: 100, rows: 40 }).await.unwrap();
    crate::place::until(&engine, "a", |s| s.size.cols == 100).await;
    assert!(engine.session("a").await.unwrap().pending().await.unwrap().canonical);
    assert_eq!(engine.session("a").await.unwrap().stats().await.unwrap().log_end, Offset(6));

    let exit = engine.session("a").await.unwrap().stop(None, "the test").await.unwrap();
    assert_eq!((exit.reason, exit.by.as_deref()), (Reason::Stopped, Some("the test")));
    let session = engine.find("a").await.unwrap();
    assert_eq!((session.state, session.pid), (State::Exited, None));
    assert_eq!(session.exit, Some(exit.clone()));
    // Stopping what is over changes nothing.
    assert_eq!(engine.session("a").await.unwrap().stop(None, "again").await.unwrap(), exit);
    assert_eq!(
        engine.session("a").await.unwrap().write(b"x", Duration::from_secs(1)).await.unwrap_err().code,
        Code::Ended
    );
    assert_eq!(output(&engine, "a").await, "hello\n");
    engine.close().await;
}

#[tokio::test]
async fn a_kill_overtakes_a_stop_that_waits() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:ignore-term"])).await.unwrap();
    let slow = tokio::spawn({
        let engine = engine.clone();
        async move { engine.session("a").await.unwrap().stop(Some(Duration::from_secs(600)), "patient").await }
    });
    place.faults.called(Op::Stop, 1).await;
    let exit =
        tokio::time::timeout(Duration::from_secs(5), engine.session("a").await.unwrap().kill("impatient"))
            .await
            .unwrap()
            .unwrap();
    assert_eq!((exit.reason, exit.signal), (Reason::Killed, Some(9)));
    assert_eq!(slow.await.unwrap().unwrap(), exit);
    engine.close().await;
}

#[tokio::test]
async fn wait_gives_the_commands_own_code() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:exit", "7"])).await.unwrap();
    assert_eq!(engine.session("a").await.unwrap().wait().await.unwrap().code, Some(7));
    assert_eq!(state(&engine, "a", State::Exited).await.exit.as_ref().unwrap().shell_code(), 7);
    engine.close().await;
}

#[tokio::test]
async fn a_failed_start_leaves_nothing() {
    let place = Place::new();
    let engine = place.open().await;
    let missing = engine.start(named("a", &["fake:missing"])).await.unwrap_err();
    assert_eq!(missing.code, Code::CommandNotFound);
    let mut with_prompt = named("a", &["fake:missing"]);
    with_prompt.prompt = Some("secret".into());
    with_prompt.ports = vec![wharf_model::Port { variable: "PORT".into(), number: 0 }];
    assert_eq!(engine.start(with_prompt).await.unwrap_err().code, Code::CommandNotFound);
    let mut requires = named("a", &["fake:sleep"]);
    requires.require = vec!["no-such-program".into()];
    assert_eq!(engine.start(requires).await.unwrap_err().code, Code::MissingRequirement);
    let mut elsewhere = named("a", &["fake:sleep"]);
    elsewhere.backend = Some("elsewhere".into());
    assert_eq!(engine.start(elsewhere).await.unwrap_err().code, Code::Invalid);
    assert!(engine.list(&Filter::default()).is_empty());
    let home = place.home();
    assert_eq!(std::fs::read_dir(home.sessions()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(home.names()).unwrap().count(), 0);
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn a_start_that_hangs_is_given_up_and_nothing_is_left() {
    let place = Place::new();
    let mut config = place.config();
    config.timeouts.start = Duration::from_millis(50);
    let engine = Engine::open(config).await.unwrap();
    place.faults.inject(Op::Start, Fault::Hang, Times::Once);
    assert_eq!(engine.start(named("a", &["fake:sleep"])).await.unwrap_err().code, Code::Timeout);
    assert_eq!(engine.find("a").await.unwrap_err().code, Code::NotFound);
    // One whose answer was lost did start: it is ended.
    place.faults.inject(Op::Start, Fault::LoseAnswer(Failure::new(Code::Timeout, "too slow")), Times::Once);
    assert_eq!(engine.start(named("a", &["fake:sleep"])).await.unwrap_err().code, Code::Timeout);
    assert!(place.fake.live().is_empty());
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn the_commands_variables_are_exactly_those() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:env"]);
    spec.tty = false;
    spec.env = Environment {
        base: EnvironmentBase::Caller,
        caller: vec![
            ("A".into(), "1".into()),
            ("GONE".into(), "1".into()),
            ("WHARF_SESSION".into(), "outer".into()),
            ("WHARF_PROMPT_FILE".into(), "/outer".into()),
            ("RAW".into(), Text::from(&b"\xff\n'\"$(x)"[..])),
        ],
        changes: vec![
            Change::Set("B".into(), "".into()),
            Change::Append("A".into(), "2".into(), ":".into()),
            Change::Unset("GONE".into()),
        ],
    };
    spec.ports = vec![wharf_model::Port { variable: "PORT".into(), number: 0 }];
    let session = engine.start(spec).await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    let port = session.ports[0].number;
    assert_ne!(port, 0);
    let ticket = std::fs::read(place.home().session(&session.id).join(Home::TICKET)).unwrap();
    let ticket: wharf_model::Ticket = serde_json::from_slice(&ticket).unwrap();
    let log = std::fs::read(place.home().session(&session.id).join("log/00000000000000000000.log")).unwrap();
    let mut expected = b"A=1:2\0WHARF_SESSION=a\0RAW=\xff\n'\"$(x)\0B=\0".to_vec();
    expected.extend(format!("WHARF_SESSION_ID={}\0WHARF_TOKEN={}\0", session.id, ticket.token).bytes());
    expected.extend(format!("WHARF_STATE={}\0", place.home().state().display()).bytes());
    expected.extend(format!("PORT={port}\0").bytes());
    assert_eq!(String::from_utf8_lossy(&log), String::from_utf8_lossy(&expected));
    assert_eq!(engine.session("a").await.unwrap().env().await.unwrap().len(), 8);
    engine.close().await;
}

#[tokio::test]
async fn a_terminal_is_told_what_it_is() {
    let place = Place::new();
    let engine = place.open().await;
    for (term, base, expected) in [
        (Some("dumb"), EnvironmentBase::Caller, Some("xterm-256color")),
        (None, EnvironmentBase::Caller, Some("xterm-256color")),
        (Some("vt100"), EnvironmentBase::Caller, Some("vt100")),
        (None, EnvironmentBase::Empty, None),
    ] {
        let mut spec = spec(&["fake:sleep"]);
        spec.env.base = base;
        spec.env.caller = term.map(|term| ("TERM".into(), term.into())).into_iter().collect();
        let session = engine.start(spec).await.unwrap();
        let vars = engine.session(session.name.as_str()).await.unwrap().env().await.unwrap();
        let found = vars.iter().find(|(name, _)| name.as_bytes() == b"TERM").map(|(_, value)| value.clone());
        assert_eq!(found, expected.map(Text::from), "{term:?} {base:?}");
    }
    engine.close().await;
}

#[tokio::test]
async fn the_prompt_is_beside_the_session_and_private() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:sleep"]);
    spec.prompt = Some("do it".into());
    let session = engine.start(spec).await.unwrap();
    let path = place.home().session(&session.id).join(Home::PROMPT);
    assert_eq!(std::fs::read(&path).unwrap(), b"do it");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let vars = engine.session("a").await.unwrap().env().await.unwrap();
    assert!(vars.contains(&("WHARF_PROMPT_FILE".into(), path.into())));
    engine.close().await;
}

#[tokio::test]
async fn restart_goes_on_with_the_same_session() {
    let place = Place::new();
    let engine = place.open().await;
    let first = engine.start(named("a", &["fake:print", "hi"])).await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    let second = engine.session("a").await.unwrap().restart(None, "the test").await.unwrap();
    assert_eq!((&second.id, &second.name, second.run), (&first.id, &first.name, 2));
    engine.session("a").await.unwrap().wait().await.unwrap();
    assert_eq!(output(&engine, "a").await, "hi\nhi\n");
    assert!(place.home().session(&first.id).join("exit.1.json").exists());
    engine.close().await;

    // A live one is stopped first.
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("b", &["fake:echo"])).await.unwrap();
    let again = engine.session("b").await.unwrap().restart(None, "the test").await.unwrap();
    assert_eq!((again.state, again.run, place.fake.starts()), (State::Running, 2, 2));
    assert_eq!(place.fake.live().len(), 1);
    engine.close().await;
}

#[tokio::test]
async fn the_end_of_one_run_is_never_taken_for_that_of_the_next() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    for run in 2..40 {
        assert_eq!(engine.session("a").await.unwrap().restart(None, "x").await.unwrap().run, run);
        place.fake.print(&session.id, b".");
        tokio::task::yield_now().await;
        assert_eq!(engine.find("a").await.unwrap().state, State::Running, "run {run}");
        assert_eq!(place.fake.live().len(), 1);
    }
    assert_eq!(engine.session("a").await.unwrap().stop(None, "x").await.unwrap().log_end, Offset(38));
    assert!(place.fake.live().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn a_restart_that_fails_leaves_what_was_there() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:exit", "3"])).await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    place.faults.inject(
        Op::Start,
        Fault::Fail(Failure::new(Code::Exhausted, "no more terminals")),
        Times::Once,
    );
    assert_eq!(
        engine.session("a").await.unwrap().restart(None, "x").await.unwrap_err().code,
        Code::Exhausted
    );
    let after = state(&engine, "a", State::Exited).await;
    assert_eq!((after.run, after.exit.as_ref().unwrap().code), (1, Some(3)));
    assert!(place.home().session(&session.id).join(Home::EXIT).exists());
    assert_eq!(engine.session("a").await.unwrap().restart(None, "x").await.unwrap().run, 2);
    engine.close().await;
}

#[tokio::test]
async fn a_panic_in_one_session_leaves_the_others_and_is_recovered_from() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("calm", &["fake:sleep"])).await.unwrap();
    place.faults.inject(Op::Start, Fault::Panic, Times::Once);
    assert_eq!(engine.start(named("wild", &["fake:sleep"])).await.unwrap_err().code, Code::Internal);
    assert_eq!(engine.find("calm").await.unwrap().state, State::Running);
    engine.start(named("wild", &["fake:sleep"])).await.unwrap();
    // One that panics while it looks for a live session finds it at the next look.
    let id = engine.find("calm").await.unwrap().id.clone();
    place.faults.inject(Op::Adopt, Fault::Panic, Times::Once);
    place.fake.break_connection(&id);
    place.faults.called(Op::Adopt, 2).await;
    state(&engine, "calm", State::Running).await;
    engine.session("calm").await.unwrap().stop(None, "x").await.unwrap();
    assert_eq!(engine.find("wild").await.unwrap().state, State::Running);
    engine.close().await;
}

#[tokio::test]
async fn only_what_is_over_is_removed() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    assert_eq!(engine.session("a").await.unwrap().remove(false).await.unwrap_err().code, Code::Running);
    engine.session("a").await.unwrap().remove(true).await.unwrap();
    assert_eq!(engine.find("a").await.unwrap_err().code, Code::NotFound);
    assert_eq!(engine.find(session.id.as_str()).await.unwrap_err().code, Code::NotFound);
    assert!(!place.home().session(&session.id).exists());
    assert!(place.home().name(&session.name).symlink_metadata().is_err());
    assert!(place.fake.live().is_empty());
    engine.close().await;
}

#[tokio::test]
async fn many_cycles_leave_nothing() {
    let place = Place::new();
    let engine = place.open().await;
    for _ in 0..100 {
        engine.start(named("a", &["fake:sleep"])).await.unwrap();
        engine.session("a").await.unwrap().stop(None, "x").await.unwrap();
        engine.session("a").await.unwrap().remove(false).await.unwrap();
    }
    assert!(engine.list(&Filter::default()).is_empty());
    assert_eq!(std::fs::read_dir(place.home().sessions()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(place.home().names()).unwrap().count(), 0);
    engine.close().await;
}
