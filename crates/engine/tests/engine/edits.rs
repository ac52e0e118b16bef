//! Tests renaming, changes of variables, and snapshots of live sessions.

use wharf_engine::Engine;
use wharf_model::{Code, Environment, Home, Text, Ticket};

use crate::place::{Place, named};

fn ticket(place: &Place, id: &wharf_model::SessionId) -> Ticket {
    serde_json::from_slice(&std::fs::read(place.home().session(id).join(Home::TICKET)).unwrap()).unwrap()
}

#[tokio::test]
async fn a_live_session_gets_another_name() {
    let place = Place::new();
    let engine = place.open().await;
    let a = engine.start(named("a", &["fake:echo"])).await.unwrap();
    engine.start(named("b", &["fake:sleep"])).await.unwrap();
    assert_eq!(
        engine.session("a").await.unwrap().rename("b".parse().unwrap()).await.unwrap_err().code,
        Code::NameTaken
    );
    assert_eq!(engine.find("a").await.unwrap().id, a.id);
    let renamed = engine.session("a").await.unwrap().rename("c".parse().unwrap()).await.unwrap();
    assert_eq!((renamed.id.clone(), renamed.name.as_str()), (a.id.clone(), "c"));
    assert_eq!(engine.find("a").await.unwrap_err().code, Code::NotFound);
    assert!(std::fs::read_link(place.home().names().join("c")).unwrap().ends_with(a.id.as_str()));
    assert!(place.home().names().join("a").symlink_metadata().is_err());
    assert_eq!(ticket(&place, &a.id).name.as_str(), "c");
    // The old name is free, and the new one lasts.
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    engine.close().await;
    drop(engine);
    let engine = place.open().await;
    assert_eq!(engine.find("c").await.unwrap().id, a.id);
    assert_eq!(engine.session("c").await.unwrap().restart(None, "x").await.unwrap().name.as_str(), "c");
    engine.close().await;
}

#[tokio::test]
async fn variables_change_for_what_starts_later() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:sleep"]);
    spec.env.changes = vec![
        wharf_model::Change::Set("KEEP".into(), "1".into()),
        wharf_model::Change::Set("GONE".into(), "1".into()),
    ];
    let a = engine.start(spec).await.unwrap();
    engine
        .session("a")
        .await
        .unwrap()
        .set_env(vec![("NEW".into(), "$(x)\n".into())], vec!["GONE".into()])
        .await
        .unwrap();
    let vars = engine.session("a").await.unwrap().env().await.unwrap();
    assert!(vars.contains(&("KEEP".into(), "1".into())) && vars.contains(&("NEW".into(), "$(x)\n".into())));
    assert!(!vars.iter().any(|(name, _)| name.as_bytes() == b"GONE"));
    assert_eq!(
        engine
            .session("a")
            .await
            .unwrap()
            .set_env(vec![("A=B".into(), "".into())], vec![])
            .await
            .unwrap_err()
            .code,
        Code::Invalid
    );
    engine.session("a").await.unwrap().restart(None, "x").await.unwrap();
    assert_eq!(engine.session("a").await.unwrap().env().await.unwrap().len(), vars.len());
    assert_eq!(ticket(&place, &a.id).run, 2);
    engine.close().await;
}

#[tokio::test]
async fn a_snapshot_is_replaced_only_when_something_changed() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("a", &["fake:sleep"])).await.unwrap();
    let settled = crate::place::until(&engine, "a", |session| session.pid.is_some()).await;
    engine.session("a").await.unwrap().set_env(vec![("A".into(), "1".into())], vec![]).await.unwrap();
    let again = engine.find("a").await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&settled, &again));
    engine.close().await;
}

/// What a command that starts in the session now has as the events socket.
async fn events_sockets(engine: &Engine) -> Vec<Text> {
    let env = engine.session("a").await.unwrap().env().await.unwrap().into_iter();
    env.filter(|(name, _)| name.as_bytes() == b"WHARF_EVENTS").map(|(_, path)| path).collect()
}

#[tokio::test]
async fn the_events_socket_is_named_where_somebody_serves_it() {
    let place = Place::new();
    let engine = place.open().await;
    let mut spec = named("a", &["fake:sleep"]);
    // As in a session that was started in another one.
    spec.env = Environment::exactly([("WHARF_EVENTS".into(), "/another".into())]);
    engine.start(spec).await.unwrap();
    let socket: Text = place.home().events_socket().into();
    assert_eq!(events_sockets(&engine).await, []);
    engine.set_events_served(true);
    assert_eq!(events_sockets(&engine).await, std::slice::from_ref(&socket));
    engine.set_events_served(false);
    assert_eq!(events_sockets(&engine).await, []);
    engine.close().await;
    drop(engine);
    let mut config = place.config();
    config.serves_events = true;
    let engine = Engine::open(config).await.unwrap();
    assert_eq!(events_sockets(&engine).await, [socket]);
    engine.close().await;
}
