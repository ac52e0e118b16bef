//! Tests what becomes of messages that nobody can type yet, and of what many tell at once.

use futures_util::future::join_all;
use serde_json::json;
use wharf_engine::Engine;
use wharf_model::{Code, Manner, Progress, Receipt, SessionId, State, Until};

use crate::place::{DEADLINE, Place, named};

/// Starts an agent that never shows that it is ready, so that its messages wait.
async fn start_agent(place: &Place, engine: &Engine) -> SessionId {
    let profiles = place.home().config().join("profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    let profile = "title = \"Slow\"\nprograms = [\"fake:sleep\"]\nattend = true\n";
    std::fs::write(profiles.join("slow.toml"), profile).unwrap();
    let started = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    assert_eq!((started.agent.as_deref(), started.state), (Some("slow"), State::Starting));
    started.id.clone()
}

async fn send(engine: &Engine, text: &str) -> Receipt {
    engine.session("a").await.unwrap().send(text.to_owned(), Manner::default()).await.unwrap()
}

#[tokio::test]
async fn a_message_that_is_taken_back_stays_so() {
    let place = Place::new();
    let engine = place.open().await;
    start_agent(&place, &engine).await;
    let sent = send(&engine, "hello").await;
    assert_eq!(
        engine.session_of_message(&sent.id).await.unwrap().cancel(&sent.id).await.unwrap().status,
        Progress::Cancelled
    );
    // Whoever waited to type it has seen so once the session's last event is told.
    engine.session("a").await.unwrap().kill("a test").await.unwrap();
    let mut events = engine.session("a").await.unwrap().events(0).await.unwrap();
    let mut told = Vec::new();
    while let Some(event) = events.next(true).await.unwrap() {
        told.extend((event.kind == "message").then(|| event.data["status"].clone()));
    }
    assert_eq!(told, ["cancelled"]);
    assert_eq!(
        engine.session_of_message(&sent.id).await.unwrap().receipt(&sent.id).await.unwrap().status,
        Progress::Cancelled
    );
    engine.close().await;
}

#[tokio::test]
async fn a_message_whose_text_is_lost_is_refused_and_the_next_one_is_delivered() {
    let place = Place::new();
    let engine = place.open().await;
    let id = start_agent(&place, &engine).await;
    let sent = send(&engine, "hello").await;
    engine.close().await;
    // A journal that was made shorter keeps receipts without texts. One that is not over has no text to type.
    let mut receipt = serde_json::to_value(&sent).unwrap();
    receipt["id"] = json!(format!("{id}.7"));
    let messages = place.home().session(&id).join("messages");
    let line = json!({ "kept": { "receipt": receipt, "key": null } });
    std::fs::write(&messages, format!("{line}\n")).unwrap();
    let engine = place.open().await;
    let session = engine.session("a").await.unwrap();
    let how = wharf_engine::Await::Submitted;
    let kept = format!("{id}.7");
    let over = tokio::time::timeout(DEADLINE, session.await_receipt(&kept, how, DEADLINE));
    let over = over.await.expect("the engine is not kept busy by it").unwrap();
    assert_eq!((over.status, over.code), (Progress::Refused, Some(Code::Internal)));
    assert_eq!(send(&engine, "next").await.status, Progress::Accepted);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_that_come_at_once_are_each_taken_once_and_outlive_the_engine() {
    let place = Place::new();
    let engine = place.open().await;
    start_agent(&place, &engine).await;
    let texts: Vec<String> = (0..60).map(|number| format!("text {}", number / 2)).collect();
    // Every text comes twice, with a key.
    let session = engine.session("a").await.unwrap();
    let sent = join_all(texts.iter().map(|text| {
        let manner = Manner { key: Some(text.clone()), ..Manner::default() };
        session.send(text.as_str(), manner)
    }));
    let mut ids: Vec<String> = sent.await.into_iter().map(|sent| sent.unwrap().id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 30);
    let all = engine.session("a").await.unwrap().messages().await.unwrap();
    assert_eq!(all.len(), 30);
    let last = all.last().unwrap().id.clone();
    engine.session_of_message(&last).await.unwrap().cancel(&last).await.unwrap();
    engine.close().await;
    drop(engine);

    let engine = place.open().await;
    let again = engine.session("a").await.unwrap().messages().await.unwrap();
    let ids = |all: &[Receipt]| all.iter().map(|receipt| receipt.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&all), "in the order in which they were taken");
    assert_eq!(again.last().unwrap().status, Progress::Cancelled);
    assert!(again[..29].iter().all(|receipt| receipt.status == Progress::Accepted));
    engine.session("a").await.unwrap().kill("a test").await.unwrap();
    for receipt in &again {
        let over = engine
            .session_of_message(&receipt.id)
            .await
            .unwrap()
            .await_receipt(&receipt.id, wharf_engine::Await::Confirmed, DEADLINE)
            .await
            .unwrap();
        assert!(over.status.is_over());
        assert_eq!(over.status == Progress::Cancelled, over.id == last);
        assert!(over.id == last || over.code == Some(Code::Ended), "{over:?}");
    }
    engine.close().await;
}

#[tokio::test]
async fn a_flood_of_what_an_agent_tells_is_taken_whole() {
    let place = Place::new();
    let engine = place.open().await;
    let id = start_agent(&place, &engine).await;
    let session = engine.session("a").await.unwrap();
    let told = (0..300).map(|number| {
        let kind = if number % 2 == 0 { "turn.ended" } else { "turn.started" };
        session.tell("test", kind, json!({ "number": number }))
    });
    for event in join_all(told).await {
        event.unwrap();
    }
    engine.session(id.as_str()).await.unwrap().tell("test", "permission.asked", json!({})).await.unwrap();
    let met =
        engine.session("a").await.unwrap().until(Until::State(State::Asking), Some(DEADLINE)).await.unwrap();
    assert!(met.evidence.contains("permission.asked"), "{}", met.evidence);
    let mut events = engine.session("a").await.unwrap().events(0).await.unwrap();
    let mut count = 0;
    while let Some(event) = events.next(false).await.unwrap() {
        count += usize::from(event.source == "test");
    }
    assert_eq!(count, 301);
    engine.close().await;
}
