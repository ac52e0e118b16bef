//! Tests sessions that wait for others before they start.

use std::time::Duration;

use wharf_model::{Code, Port, Reason, State};

use crate::place::{Place, named, state, until};

fn waits(name: &str, after: &str) -> wharf_model::Spec {
    let mut spec = named(name, &["fake:sleep"]);
    spec.after = vec![after.parse().unwrap()];
    spec
}

#[tokio::test]
async fn a_session_starts_when_another_has_ended() {
    let place = Place::new();
    let engine = place.open().await;
    let first = engine.start(named("first", &["fake:sleep"])).await.unwrap();
    let second = engine.start(waits("second", "first")).await.unwrap();
    assert_eq!(second.state, State::Starting);
    until(&engine, "second", |session| session.detail.as_deref() == Some("waits for first to end")).await;
    assert_eq!(
        engine.session("second").await.unwrap().write(b"x", Duration::from_secs(1)).await.unwrap_err().code,
        Code::NotStarted
    );
    assert_eq!(place.fake.starts(), 1);
    place.fake.exit(&first.id, 1);
    state(&engine, "second", State::Running).await;
    engine.close().await;
}

#[tokio::test]
async fn a_session_that_waits_for_success_fails_with_it() {
    let place = Place::new();
    let engine = place.open().await;
    let first = engine.start(named("first", &["fake:sleep"])).await.unwrap();
    let second = engine.start(waits("second", "first:success")).await.unwrap();
    place.fake.exit(&first.id, 1);
    let exit = engine.session("second").await.unwrap().wait().await.unwrap();
    assert_eq!((exit.reason, exit.shell_code()), (Reason::Failed, 125));
    let third = engine.start(named("third", &["fake:exit", "0"])).await.unwrap();
    engine.start(waits("fourth", "third:success")).await.unwrap();
    state(&engine, "fourth", State::Running).await;
    assert_eq!(place.fake.starts(), 3);
    engine.close().await;
    drop(engine);
    // Its end is remembered, also without the store.
    std::fs::remove_file(place.home().store()).unwrap();
    let engine = place.open().await;
    assert_eq!(engine.find(second.id.as_str()).await.unwrap().exit.as_ref().unwrap().reason, Reason::Failed);
    assert_eq!(engine.find(third.id.as_str()).await.unwrap().exit.as_ref().unwrap().code, Some(0));
    engine.close().await;
}

#[tokio::test]
async fn a_wait_goes_on_in_another_engine_and_can_be_stopped() {
    let place = Place::new();
    let engine = place.open().await;
    let first = engine.start(named("first", &["fake:sleep"])).await.unwrap();
    engine.start(waits("second", "first")).await.unwrap();
    engine.start(waits("third", "first")).await.unwrap();
    engine.close().await;
    drop(engine);
    let engine = place.open().await;
    assert_eq!(engine.find("second").await.unwrap().state, State::Starting);
    let exit = engine.session("third").await.unwrap().stop(None, "the test").await.unwrap();
    assert_eq!((exit.reason, exit.by.as_deref()), (Reason::Stopped, Some("the test")));
    place.fake.exit(&first.id, 0);
    state(&engine, "second", State::Running).await;
    assert_eq!(place.fake.starts(), 2);
    engine.close().await;
}

#[tokio::test]
async fn a_session_starts_when_a_port_is_listened_on() {
    let place = Place::new();
    let engine = place.open().await;
    let mut server = named("server", &["fake:sleep"]);
    server.ports = vec![Port { variable: "PORT".into(), number: 0 }];
    let server = engine.start(server).await.unwrap();
    engine.start(waits("client", "server:port")).await.unwrap();
    assert_eq!(place.fake.starts(), 1);
    let listener = std::net::TcpListener::bind(("127.0.0.1", server.ports[0].number)).unwrap();
    state(&engine, "client", State::Running).await;
    drop(listener);
    engine.start(waits("late", "client:port")).await.unwrap_err();
    engine.close().await;
}

#[tokio::test]
async fn what_can_never_be_waited_for_is_refused() {
    let place = Place::new();
    let engine = place.open().await;
    assert_eq!(engine.start(waits("a", "nobody")).await.unwrap_err().code, Code::NotFound);
    assert_eq!(engine.start(waits("a", "nobody:idle")).await.unwrap_err().code, Code::NotFound);
    assert_eq!(std::fs::read_dir(place.home().names()).unwrap().count(), 0);
    engine.close().await;
}
