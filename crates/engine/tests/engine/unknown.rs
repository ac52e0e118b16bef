use std::time::Duration;

use wharf_backend::faults::{Fault, Op, Times};
use wharf_engine::Failure;
use wharf_model::{Code, Restart, State};

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
    place.fake.break_connection(&session.id);
    let unknown = state(&engine, "a", State::Unknown).await;
    assert_eq!(unknown.detail.as_deref(), Some("the backend is down"));
    assert!(unknown.exit.is_none());
    place.faults.called(Op::Adopt, 5).await;
    assert_eq!(engine.find("a").await.unwrap().state, State::Unknown);
    assert_eq!(place.fake.live(), vec![session.id.clone()], "it lives on");
    assert_eq!(place.fake.starts(), 1, "no second copy");
    // What cannot be done is said, and changes nothing.
    assert_eq!(engine.stop("a", None, "x").await.unwrap_err().code, Code::Unreachable);
    assert_eq!(engine.remove("a", true).await.unwrap_err().code, Code::Unreachable);
    assert_eq!(engine.restart("a", None, "x").await.unwrap_err().code, Code::Unreachable);
    assert_eq!(engine.write("a", b"x", Duration::from_secs(1)).await.unwrap_err().code, Code::Unreachable);
    assert_eq!(engine.start(named("a", &["fake:sleep"])).await.unwrap_err().code, Code::NameTaken);
    assert!(engine.gc(false, Some(wharf_model::Millis(u64::MAX))).await.unwrap().is_empty());
    place.faults.clear();
    state(&engine, "a", State::Running).await;
    engine.write("a", b"back\n", Duration::from_secs(1)).await.unwrap();
    assert_eq!(place.fake.input(&session.id), b"back\n");
    engine.stop("a", None, "x").await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn a_stop_whose_answer_is_lost_is_not_taken_for_done_until_it_is_seen() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    place.faults.inject(Op::Stop, down(), Times::Next(2));
    assert_eq!(engine.stop("a", None, "x").await.unwrap_err().code, Code::Unreachable);
    assert_eq!(engine.find("a").await.unwrap().state, State::Running);
    place.faults.inject(Op::Stop, Fault::LoseAnswer(Failure::new(Code::Unreachable, "lost")), Times::Once);
    // It was carried out, which the session's own status tells.
    let _ = engine.stop("a", None, "x").await;
    state(&engine, "a", State::Exited).await;
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
        tokio::spawn(async move { engine.write("a", b"x", Duration::from_secs(60)).await });
    }
    place.faults.called(Op::Write, 20).await;
    let stopped = tokio::time::timeout(Duration::from_secs(2), engine.stop("a", None, "x")).await;
    assert!(stopped.unwrap().is_ok());
    engine.close().await;
}

#[tokio::test]
async fn a_process_is_in_a_session_only_below_its_holder() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    assert_eq!(engine.origin_of(std::process::id() as i32), wharf_engine::Origin::Outside);
    assert_eq!(engine.origin_of(-1), wharf_engine::Origin::Unclear);
    engine.close().await;
}
