//! Tests restart policies, run timeouts and idle timeouts.

use std::time::Duration;

use wharf_backend::faults::{Fault, Op, Times};
use wharf_engine::Failure;
use wharf_model::{Backoff, Code, Millis, Reason, Restart, State};

use crate::place::{Place, named, state, until};

fn supervised(restart: Restart, argv: &[&str]) -> wharf_model::Spec {
    let mut spec = named("a", argv);
    spec.restart = restart;
    spec.backoff = Backoff { first: Millis(20), cap: Millis(40), most: None };
    spec
}

#[tokio::test]
async fn always_starts_again_until_somebody_stops_it() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(supervised(Restart::Always, &["fake:sleep"])).await.unwrap();
    for run in 2..5 {
        place.fake.exit(&session.id, 0);
        until(&engine, "a", |session| session.run == run && session.state == State::Running).await;
    }
    engine.session("a").await.unwrap().stop(None, "x").await.unwrap();
    assert_eq!(engine.find("a").await.unwrap().state, State::Exited);
    assert_eq!(place.fake.starts(), 4);
    engine.close().await;
}

#[tokio::test]
async fn on_failure_starts_again_only_after_a_failure() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(supervised(Restart::OnFailure, &["fake:sleep"])).await.unwrap();
    place.fake.exit(&session.id, 3);
    until(&engine, "a", |session| session.run == 2 && session.state == State::Running).await;
    place.fake.exit(&session.id, 0);
    state(&engine, "a", State::Exited).await;
    assert_eq!(place.fake.starts(), 2);
    engine.close().await;
}

#[tokio::test]
async fn restarts_have_an_end_where_one_is_given() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = supervised(Restart::Always, &["fake:exit", "9"]);
    spec.backoff.most = Some(3);
    engine.start(spec).await.unwrap();
    assert_eq!(engine.session("a").await.unwrap().wait().await.unwrap().code, Some(9));
    assert_eq!((place.fake.starts(), engine.find("a").await.unwrap().run), (4, 4));
    engine.close().await;
}

#[tokio::test]
async fn a_session_that_rests_can_be_stopped_and_survives_another_engine() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = supervised(Restart::Always, &["fake:exit", "1"]);
    spec.backoff = Backoff { first: Millis(600_000), cap: Millis(600_000), most: None };
    engine.start(spec).await.unwrap();
    state(&engine, "a", State::Starting).await;
    engine.close().await;
    drop(engine);
    let engine = place.open().await;
    let resting = state(&engine, "a", State::Starting).await;
    assert!(resting.detail.as_ref().unwrap().contains("restart 2"), "{resting:?}");
    assert_eq!(place.fake.starts(), 1);
    assert_eq!(engine.session("a").await.unwrap().stop(None, "x").await.unwrap().code, Some(1));
    assert_eq!(engine.find("a").await.unwrap().state, State::Exited);
    engine.close().await;
}

#[tokio::test]
async fn what_ended_while_no_engine_was_there_is_started_again() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(supervised(Restart::OnFailure, &["fake:sleep"])).await.unwrap();
    engine.close().await;
    drop(engine);
    place.fake.exit(&session.id, 1);
    let engine = place.open().await;
    until(&engine, "a", |session| session.run == 2 && session.state == State::Running).await;
    engine.close().await;
}

#[tokio::test]
async fn a_lost_session_is_started_again_only_when_nothing_of_it_is_left() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(supervised(Restart::Always, &["fake:sleep"])).await.unwrap();
    let down = Failure::new(Code::Unreachable, "cannot tell");
    place.faults.inject(Op::Sweep, Fault::Fail(down), Times::Next(2));
    place.fake.lose(&session.id);
    until(&engine, "a", |session| session.run == 2 && session.state == State::Running).await;
    assert_eq!((place.faults.calls(Op::Sweep), place.fake.starts()), (3, 2));
    engine.close().await;
}

#[tokio::test]
async fn a_run_that_lasts_too_long_is_ended() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:ignore-term"]);
    spec.run_timeout = Some(Millis(50));
    spec.grace = Some(Millis(10));
    engine.start(spec).await.unwrap();
    let exit = engine.session("a").await.unwrap().wait().await.unwrap();
    assert_eq!((exit.reason, exit.signal), (Reason::Timeout, Some(9)));
    engine.close().await;
}

#[tokio::test]
async fn a_run_timeout_counts_across_engines() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:sleep"]);
    spec.run_timeout = Some(Millis(600));
    let begun = std::time::Instant::now();
    engine.start(spec).await.unwrap();
    engine.close().await;
    drop(engine);
    let engine = place.open().await;
    assert_eq!(engine.session("a").await.unwrap().wait().await.unwrap().reason, Reason::Timeout);
    assert!(begun.elapsed() >= Duration::from_millis(550), "{:?}", begun.elapsed());
    engine.close().await;
}

#[tokio::test]
async fn a_quiet_session_is_ended_and_a_busy_one_is_not() {
    let place = Place::new();
    let engine = place.open().await;
    let mut quiet = named("quiet", &["fake:sleep"]);
    quiet.idle_timeout = Some(Millis(150));
    let mut busy = named("busy", &["fake:sleep"]);
    busy.idle_timeout = Some(Millis(2_000));
    let busy = engine.start(busy).await.unwrap();
    engine.start(quiet).await.unwrap();
    let printer = tokio::spawn({
        let fake = place.fake.clone();
        let id = busy.id.clone();
        async move {
            for _ in 0..30 {
                fake.print(&id, b".");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    assert_eq!(engine.session("quiet").await.unwrap().wait().await.unwrap().reason, Reason::Idle);
    printer.await.unwrap();
    assert_eq!(engine.find("busy").await.unwrap().state, State::Running);
    engine.session("busy").await.unwrap().kill("x").await.unwrap();
    engine.close().await;
}
