//! Tests who gets a name in a race, made-up names, and lookup by id.

use std::collections::HashSet;

use wharf_engine::{Engine, Filter};
use wharf_model::{Code, State};

use crate::place::{Place, named, spec};

async fn race<T: Send + 'static>(
    engine: &Engine,
    count: usize,
    make: impl Fn(Engine) -> std::pin::Pin<Box<dyn Future<Output = T> + Send>>,
) -> Vec<T> {
    let tasks: Vec<_> = (0..count).map(|_| tokio::spawn(make(engine.clone()))).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_hundred_starts_with_one_name_exactly_one_wins() {
    let place = Place::new();
    let engine = place.open().await;
    let results =
        race(&engine, 100, |engine| Box::pin(async move { engine.start(named("a", &["fake:sleep"])).await }))
            .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().filter_map(|result| result.as_ref().err()).all(|f| f.code == Code::NameTaken));
    assert_eq!((place.fake.starts(), engine.live()), (1, 1));
    assert_eq!(std::fs::read_dir(place.home().sessions()).unwrap().count(), 1);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_hundred_ensures_exactly_one_starts() {
    let place = Place::new();
    let engine = place.open().await;
    let by_name = race(&engine, 100, |engine| {
        Box::pin(async move { engine.ensure(named("a", &["fake:sleep"])).await })
    })
    .await;
    let by_name: Vec<_> = by_name.into_iter().map(Result::unwrap).collect();
    assert_eq!(by_name.iter().filter(|(_, made)| *made).count(), 1);
    assert_eq!(by_name.iter().map(|(session, _)| session.id.clone()).collect::<HashSet<_>>().len(), 1);
    let by_group = race(&engine, 100, |engine| {
        Box::pin(async move {
            let mut spec = spec(&["fake:sleep"]);
            spec.group = Some("team".parse().unwrap());
            engine.ensure(spec).await
        })
    });
    let by_group: Vec<_> = by_group.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(by_group.iter().filter(|(_, made)| *made).count(), 1);
    assert_eq!((place.fake.starts(), engine.live()), (2, 2));
    engine.close().await;
}

#[tokio::test]
async fn ensure_starts_anew_what_is_over_and_says_what_fails() {
    let place = Place::new();
    let engine = place.open().await;
    let (first, made) = engine.ensure(named("a", &["fake:exit", "0"])).await.unwrap();
    assert!(made);
    engine.session("a").await.unwrap().wait().await.unwrap();
    let (second, made) = engine.ensure(named("a", &["fake:sleep"])).await.unwrap();
    assert!(made && second.id != first.id);
    assert_eq!(engine.ensure(named("b", &["fake:missing"])).await.unwrap_err().code, Code::CommandNotFound);
    // The first is still there, by its id.
    assert_eq!(engine.find(first.id.as_str()).await.unwrap().state, State::Exited);
    assert_eq!(engine.find("a").await.unwrap().id, second.id);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_nameless_starts_get_a_hundred_names() {
    let place = Place::new();
    let engine = place.open().await;
    let sessions =
        race(&engine, 100, |engine| Box::pin(async move { engine.start(spec(&["fake:sleep"])).await })).await;
    let names: HashSet<String> =
        sessions.into_iter().map(|session| session.unwrap().name.to_string()).collect();
    assert_eq!(names.len(), 100);
    assert!(names.iter().all(|name| name.starts_with("fakesleep-")));
    engine.close().await;
}

#[tokio::test]
async fn a_failed_start_gives_the_name_back_to_the_session_that_had_it() {
    let place = Place::new();
    let engine = place.open().await;
    let old = engine.start(named("a", &["fake:exit", "0"])).await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    engine.start(named("a", &["fake:missing"])).await.unwrap_err();
    assert_eq!(engine.find("a").await.unwrap().id, old.id);
    let link = std::fs::read_link(place.home().name(&old.name)).unwrap();
    assert!(link.ends_with(old.id.as_str()));
    engine.close().await;
}

#[tokio::test]
async fn sessions_are_found_by_name_id_and_the_start_of_an_id() {
    let place = Place::new();
    let engine = place.open().await;
    let a = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    let a10 = engine.start(named("a-10", &["fake:sleep"])).await.unwrap();
    assert_eq!(engine.find("a").await.unwrap().id, a.id);
    assert_eq!(engine.find(a10.id.as_str()).await.unwrap().id, a10.id);
    // Ids of one moment share their first characters.
    assert_eq!(engine.find(&a.id.as_str()[..4]).await.unwrap_err().code, Code::Invalid);
    assert_eq!(engine.find(&a.id.as_str()[..15]).await.unwrap().id, a.id);
    for wrong in ["a-", "a-1", "", "..", "../a", "A"] {
        assert_eq!(engine.find(wrong).await.unwrap_err().code, Code::NotFound, "{wrong:?}");
    }
    let mut filter = Filter { live: true, ..Filter::default() };
    assert_eq!(engine.list(&filter).len(), 2);
    filter.group = Some("none".parse().unwrap());
    assert!(engine.list(&filter).is_empty());
    engine.close().await;
}

#[tokio::test]
async fn something_else_in_the_place_of_a_name_is_not_taken_away() {
    let place = Place::new();
    let engine = place.open().await;
    std::fs::create_dir(place.home().names().join("a")).unwrap();
    assert_eq!(engine.start(named("a", &["fake:sleep"])).await.unwrap_err().code, Code::NameTaken);
    assert!(place.home().names().join("a").is_dir());
    // A link that points at nothing is in nobody's way.
    std::os::unix::fs::symlink("../sessions/0000000000000000", place.home().names().join("b")).unwrap();
    engine.start(named("b", &["fake:sleep"])).await.unwrap();
    engine.close().await;
}
