//! Tests that nothing is ended or concluded while a session cannot be reached.

use std::time::Duration;

use wharf_backend::faults::{Fault, Op, Times};
use wharf_engine::Failure;
use wharf_model::{Code, Reason, Restart, State};

use crate::place::{Place, named, state};

fn down() -> Fault {
    Fault::Fail(Failure::new(Code::Unreachable, "the backend is down"))
}

#[tokio::test]
async fn a_session_that_cannot_be_reached_is_unknown_and_nothing_ends_it() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:echo"]);
    spec.restart = Restart::Always;
    let session = engine.start(spec).await.unwrap();
    place.faults.inject(Op::Adopt, down(), Times::Always);
    place.faults.inject(Op::Kill, down(), Times::Always);
    place.fake.break_connection(&session.id);
    let unknown = state(&engine, "a", State::Unknown).await;
    assert_eq!(unknown.detail.as_deref(), Some("the backend is down"));
    assert!(unknown.exit.is_none());
    place.faults.called(Op::Adopt, 5).await;
    assert_eq!(engine.find("a").await.unwrap().state, State::Unknown);
    assert_eq!(place.fake.live(), vec![session.id.clone()], "it lives on");
    assert_eq!(place.fake.starts(), 1, "no second copy");
    // What cannot be done is said, and changes nothing.
    assert_eq!(engine.session("a").await.unwrap().stop(None, "x").await.unwrap_err().code, Code::Unreachable);
    assert_eq!(engine.session("a").await.unwrap().remove(true).await.unwrap_err().code, Code::Unreachable);
    assert_eq!(
        engine.session("a").await.unwrap().restart(None, "x").await.unwrap_err().code,
        Code::Unreachable
    );
    assert_eq!(
        engine.session("a").await.unwrap().write(b"x", Duration::from_secs(1)).await.unwrap_err().code,
        Code::Unreachable
    );
    assert_eq!(engine.start(named("a", &["fake:sleep"])).await.unwrap_err().code, Code::NameTaken);
    assert!(engine.gc(false, Some(wharf_model::Millis(u64::MAX))).await.unwrap().is_empty());
    place.faults.clear();
    state(&engine, "a", State::Running).await;
    engine.session("a").await.unwrap().write(b"back\n", Duration::from_secs(1)).await.unwrap();
    assert_eq!(place.fake.input(&session.id), b"back\n");
    engine.session("a").await.unwrap().stop(None, "x").await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn a_stop_whose_answer_is_lost_is_not_taken_for_done_until_it_is_seen() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    place.faults.inject(Op::Stop, down(), Times::Next(2));
    assert_eq!(engine.session("a").await.unwrap().stop(None, "x").await.unwrap_err().code, Code::Unreachable);
    assert_eq!(engine.find("a").await.unwrap().state, State::Running);
    place.faults.inject(Op::Stop, Fault::LoseAnswer(Failure::new(Code::Unreachable, "lost")), Times::Once);
    // It was carried out, which the session's own status tells.
    let _ = engine.session("a").await.unwrap().stop(None, "x").await;
    state(&engine, "a", State::Exited).await;
    engine.close().await;
}

#[tokio::test]
async fn a_kill_is_carried_out_by_the_place_whatever_the_holder_answers() {
    let place = Place::new();
    let engine = place.open().await;
    let answers = [
        Failure::new(Code::Busy, "not now"),
        Failure::new(Code::Internal, "the holder's answer is odd"),
        Failure::new(Code::Ended, "it is over"),
        Failure::new(Code::Timeout, "it was not over"),
        // A holder that hangs up whenever it is asked to end.
        Failure::new(Code::Unreachable, "the connection to the holder broke"),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let name = format!("a{number}");
        let session = engine.start(named(&name, &["fake:sleep"])).await.unwrap();
        place.faults.inject(Op::Stop, Fault::Fail(answer.clone()), Times::Always);
        let exit =
            tokio::time::timeout(Duration::from_secs(20), engine.session(&name).await.unwrap().kill("me"))
                .await
                .unwrap();
        let exit = exit.unwrap_or_else(|failure| panic!("{answer:?}: {failure:?}"));
        assert_eq!((exit.reason, exit.by.as_deref()), (Reason::Killed, Some("me")), "{answer:?}");
        assert!(!place.fake.live().contains(&session.id), "{answer:?}: it lives on");
        place.faults.clear();
    }
    engine.close().await;
}

#[tokio::test]
async fn a_kill_that_the_place_cannot_carry_out_says_so_and_the_session_goes_on() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    place.faults.inject(Op::Stop, Fault::Fail(Failure::new(Code::Busy, "not now")), Times::Always);
    place.faults.inject(Op::Kill, Fault::Fail(Failure::new(Code::Unsupported, "no means")), Times::Always);
    let failure = engine.session("a").await.unwrap().kill("me").await.unwrap_err();
    assert_eq!(failure.code, Code::Unreachable);
    assert!(failure.message.contains("not now") && failure.message.contains("no means"), "{failure:?}");
    assert_eq!(place.fake.live(), vec![session.id.clone()], "it lives on");
    place.faults.clear();
    state(&engine, "a", State::Running).await;
    engine.session("a").await.unwrap().kill("me").await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn a_lost_session_is_lost_only_when_its_backend_says_so() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    place.faults.inject(Op::Adopt, down(), Times::Next(3));
    place.fake.lose(&session.id);
    state(&engine, "a", State::Unknown).await;
    state(&engine, "a", State::Lost).await;
    assert!(place.faults.calls(Op::Adopt) >= 4);
    engine.close().await;
}

#[tokio::test]
async fn input_that_nobody_reads_delays_no_stop() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    place.faults.inject(Op::Write, Fault::Hang, Times::Always);
    for _ in 0..20 {
        let engine = engine.clone();
        tokio::spawn(
            async move { engine.session("a").await.unwrap().write(b"x", Duration::from_secs(60)).await },
        );
    }
    place.faults.called(Op::Write, 20).await;
    let stopped =
        tokio::time::timeout(Duration::from_secs(2), engine.session("a").await.unwrap().stop(None, "x"))
            .await;
    assert!(stopped.unwrap().is_ok());
    engine.close().await;
}

#[tokio::test]
async fn a_process_is_a_sessions_by_its_pid_and_its_start_together() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    assert_eq!(engine.session_of_process(std::process::id() as i32, 0), None);
    assert_eq!(engine.session_of_process(-1, 0), None);
    engine.close().await;
}

#[tokio::test]
async fn a_start_whose_answer_is_lost_leaves_nothing_and_can_be_asked_for_again() {
    let place = Place::new();
    let engine = place.open().await;
    for code in [Code::Internal, Code::Unreachable, Code::Timeout] {
        let lost = Failure::new(code, "the answer was lost");
        place.faults.inject(Op::Start, Fault::LoseAnswer(lost), Times::Once);
        assert_eq!(engine.start(named("a", &["fake:echo"])).await.unwrap_err().code, code);
        assert_eq!(place.fake.live(), Vec::new(), "{code}: it runs, and nobody knows of it");
        assert_eq!(engine.find("a").await.unwrap_err().code, Code::NotFound);
    }
    let session = engine.start(named("a", &["fake:echo"])).await.unwrap();
    assert_eq!(place.fake.live(), vec![session.id.clone()], "there is one copy");
    engine.session("a").await.unwrap().stop(None, "x").await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn whoever_asks_for_a_screen_whose_log_cannot_be_read_is_told_at_once() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    let log = place.config().home.session(&session.id).join("log");
    std::fs::create_dir_all(&log).unwrap();
    let first = log.join("00000000000000000000.log");
    let _ = std::fs::remove_file(&first);
    std::os::unix::fs::symlink("/etc/passwd", first).unwrap();
    // Half of what a question may take.
    let told =
        tokio::time::timeout(Duration::from_secs(5), engine.session("a").await.unwrap().explain()).await;
    assert_eq!(told.expect("an answer").unwrap_err().code, Code::Unreachable);
    engine.close().await;
}
