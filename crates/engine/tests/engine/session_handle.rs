//! A handle for one session, as a program that embeds the engine uses it.

use wharf_engine::Engine;
use wharf_model::{Code, Offset, State};

use crate::place::{Place, named};

#[tokio::test]
async fn a_handle_means_the_same_session_whatever_it_is_called() {
    let place = Place::new();
    let engine = place.open().await;
    let id = engine.start(named("one", &["fake:sleep"])).await.unwrap().id.clone();
    let session = engine.session("one").await.unwrap();
    assert_eq!((session.id(), &session), (&id, &session.clone()));
    session.rename("two".parse().unwrap()).await.unwrap();
    // Another one has the old name now.
    engine.start(named("one", &["fake:sleep"])).await.unwrap();
    assert_eq!(session.snapshot().await.unwrap().name.as_str(), "two");
    assert_ne!(engine.session("one").await.unwrap(), session);
    assert_eq!(session.restart(None, "a test").await.unwrap().run, 2);
    session.kill("a test").await.unwrap();
    assert_eq!(session.snapshot().await.unwrap().state, State::Exited);
    session.remove(false).await.unwrap();
    assert_eq!(session.snapshot().await.unwrap_err().code, Code::NotFound);
    assert_eq!(session.kill("a test").await.unwrap_err().code, Code::NotFound);
    engine.close().await;
}

#[tokio::test]
async fn a_handle_is_found_again_by_its_id_and_follows_to_the_end() {
    let place = Place::new();
    let engine = place.open().await;
    let id = engine.start(named("one", &["fake:sleep"])).await.unwrap().id.clone();
    engine.close().await;
    drop(engine);
    let engine: Engine = place.open().await;
    let session = engine.session(id.as_str()).await.unwrap();
    let mut watch = session.watch().await.unwrap();
    assert!(!watch.current().state.is_over());
    session.kill("a test").await.unwrap();
    while !watch.current().state.is_over() {
        watch.changed().await.expect("it is told of its end");
    }
    assert!(session.wait().await.unwrap().signal.is_some());
    let mut output = session.output(Offset(0), false).await.unwrap();
    while output.next().await.unwrap().is_some() {}
    engine.close().await;
}
