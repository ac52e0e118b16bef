//! Names that are unique in their group.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wharf_engine::Engine;
use wharf_model::{Code, Home, NameScope, Spec, Ticket};

use crate::place::{Place, named, spec};

/// An engine whose names are unique in their group for as long as this says so.
async fn engine(place: &Place, by_group: &Arc<AtomicBool>) -> Engine {
    let by_group = Arc::clone(by_group);
    let naming = Arc::new(move || {
        Ok(if by_group.load(Ordering::SeqCst) { NameScope::Group } else { NameScope::Instance })
    });
    Engine::open(place.config().with_naming(naming)).await.unwrap()
}

fn switch(on: bool) -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(on))
}

fn of(group: &str, mut spec: Spec) -> Spec {
    spec.group = Some(group.parse().unwrap());
    spec
}

/// The name and the group that a session got.
async fn started(engine: &Engine, spec: Spec) -> (String, Option<String>) {
    let session = engine.start(spec).await.unwrap();
    (session.name.to_string(), session.group.as_ref().map(ToString::to_string))
}

fn is(name: &str, group: &str) -> (String, Option<String>) {
    (name.to_owned(), Some(group.to_owned()))
}

#[tokio::test]
async fn a_name_is_taken_in_its_group_alone() {
    let (place, on) = (Place::new(), switch(true));
    let engine = engine(&place, &on).await;
    let sleep = |name: &str| named(name, &["fake:sleep"]);
    assert_eq!(started(&engine, of("team", sleep("api"))).await, is("team/api", "team"));
    assert_eq!(started(&engine, of("other", sleep("api"))).await, is("other/api", "other"));
    assert_eq!(started(&engine, sleep("api")).await, ("api".to_owned(), None));
    assert_eq!(started(&engine, sleep("team/web")).await, is("team/web", "team"));
    assert_eq!(started(&engine, of("team", sleep("team/db"))).await, is("team/db", "team"));
    for taken in [of("team", sleep("api")), sleep("team/api"), sleep("other/api"), sleep("api")] {
        assert_eq!(engine.start(taken).await.unwrap_err().code, Code::NameTaken);
    }
    let failure = engine.start(of("other", sleep("team/x"))).await.unwrap_err();
    assert_eq!(failure.code, Code::Invalid);
    assert!(failure.hint.is_some_and(|hint| hint.contains("--group other --name x")));
    let mut links: Vec<_> = std::fs::read_dir(place.home().names())
        .unwrap()
        .map(|link| link.unwrap().file_name().into_string().unwrap())
        .collect();
    links.sort();
    assert_eq!(links, ["api", "other:api", "team:api", "team:db", "team:web"]);
    engine.close().await;
}

#[tokio::test]
async fn names_that_are_made_up_are_so_in_their_group() {
    let (place, on) = (Place::new(), switch(true));
    let engine = engine(&place, &on).await;
    let made_up = || spec(&["fake:sleep"]);
    assert_eq!(started(&engine, of("team", made_up())).await, is("team/fakesleep-1", "team"));
    assert_eq!(started(&engine, of("team", made_up())).await, is("team/fakesleep-2", "team"));
    assert_eq!(started(&engine, of("other", made_up())).await, is("other/fakesleep-1", "other"));
    assert_eq!(started(&engine, made_up()).await, ("fakesleep-1".to_owned(), None));
    engine.close().await;
}

#[tokio::test]
async fn ensure_finds_a_session_by_its_whole_name() {
    let (place, on) = (Place::new(), switch(true));
    let engine = engine(&place, &on).await;
    let (first, made) = engine.ensure(of("team", named("api", &["fake:sleep"]))).await.unwrap();
    assert!(made && first.name.as_str() == "team/api");
    for again in [
        of("team", named("api", &["fake:sleep"])),
        named("team/api", &["fake:sleep"]),
        of("team", spec(&["fake:sleep"])),
    ] {
        let (found, made) = engine.ensure(again).await.unwrap();
        assert_eq!((&found.id, made), (&first.id, false));
    }
    let (plain, made) = engine.ensure(named("api", &["fake:sleep"])).await.unwrap();
    assert!(made && plain.id != first.id);
    engine.close().await;
}

#[tokio::test]
async fn a_name_without_its_group_is_not_found_and_those_that_are_meant_are_told() {
    let (place, on) = (Place::new(), switch(true));
    let engine = engine(&place, &on).await;
    for group in ["team", "other"] {
        engine.start(of(group, named("api", &["fake:sleep"]))).await.unwrap();
    }
    engine.start(of("team", named("web", &["fake:sleep"]))).await.unwrap();
    for (key, hint) in [
        ("api", "there are other/api, team/api"),
        ("web", "there is team/web"),
        ("other/web", "`wharf ls` lists them"),
        ("team", "`wharf ls` lists them"),
    ] {
        let failure = engine.find(key).await.unwrap_err();
        assert_eq!((failure.code, failure.hint.as_deref()), (Code::NotFound, Some(hint)), "{key}");
    }
    engine.close().await;
}

#[tokio::test]
async fn another_name_is_one_in_the_same_group() {
    let (place, on) = (Place::new(), switch(true));
    let engine = engine(&place, &on).await;
    let api = engine.start(of("team", named("api", &["fake:sleep"]))).await.unwrap();
    engine.start(of("other", named("web", &["fake:sleep"]))).await.unwrap();
    engine.start(named("alone", &["fake:sleep"])).await.unwrap();
    let rename = async |key: &str, name: &str| {
        engine
            .session(key)
            .await
            .unwrap()
            .rename(name.parse().unwrap())
            .await
            .map(|session| session.name.to_string())
    };
    assert_eq!(rename("team/api", "web").await.unwrap(), "team/web");
    assert_eq!(rename("team/web", "team/db").await.unwrap(), "team/db");
    assert_eq!(rename("team/db", "db").await.unwrap(), "team/db");
    assert_eq!(rename("alone", "lonely").await.unwrap(), "lonely");
    for (key, name) in [("team/db", "other/db"), ("lonely", "team/lonely")] {
        let failure = rename(key, name).await.unwrap_err();
        assert_eq!(failure.code, Code::Invalid, "{key}");
        assert!(failure.hint.is_some_and(|hint| hint.contains("stays in its group")), "{key}");
    }
    assert_eq!(engine.find("team/db").await.unwrap().id, api.id);
    assert_eq!(engine.find("team/api").await.unwrap_err().code, Code::NotFound);
    assert!(place.home().names().join("team:db").symlink_metadata().is_ok());
    assert!(place.home().names().join("team:api").symlink_metadata().is_err());
    engine.close().await;
}

#[tokio::test]
async fn in_the_instance_a_group_in_a_name_is_refused() {
    let place = Place::new();
    let engine = place.open().await;
    let refused = [
        engine.start(named("team/api", &["fake:sleep"])).await.unwrap_err(),
        engine.start(of("team", named("team/api", &["fake:sleep"]))).await.unwrap_err(),
        engine.ensure(named("team/api", &["fake:sleep"])).await.unwrap_err(),
    ];
    let api = engine.start(of("team", named("api", &["fake:sleep"]))).await.unwrap();
    assert_eq!(api.name.as_str(), "api");
    let renamed = engine.session("api").await.unwrap().rename("team/api".parse().unwrap()).await.unwrap_err();
    for failure in refused.iter().chain([&renamed]) {
        assert_eq!(failure.code, Code::Invalid, "{failure}");
        let hint = failure.hint.as_deref().unwrap_or_default();
        assert!(hint.contains("[names] scope = \"group\""), "{hint}");
    }
    assert_eq!(engine.live(), 1);
    engine.close().await;
}

#[tokio::test]
async fn a_session_keeps_its_name_whatever_is_set_later() {
    let (place, on) = (Place::new(), switch(true));
    let one = engine(&place, &on).await;
    let api = one.start(of("team", named("api", &["fake:sleep"]))).await.unwrap();
    on.store(false, Ordering::SeqCst);
    let plain = one.start(of("team", named("api", &["fake:sleep"]))).await.unwrap();
    assert_eq!(plain.name.as_str(), "api");
    one.close().await;
    drop(one);
    // Another engine, and another run.
    let two = engine(&place, &on).await;
    assert_eq!(two.find("team/api").await.unwrap().id, api.id);
    assert_eq!(two.find("api").await.unwrap().id, plain.id);
    assert_eq!(
        two.session("team/api").await.unwrap().restart(None, "x").await.unwrap().name.as_str(),
        "team/api"
    );
    let ticket = std::fs::read(place.home().session(&api.id).join(Home::TICKET)).unwrap();
    let ticket: Ticket = serde_json::from_slice(&ticket).unwrap();
    assert_eq!((ticket.name.as_str(), ticket.run), ("team/api", 2));
    // Its own name again is no change; another one is by what is set now.
    assert_eq!(two.session("team/api").await.unwrap().rename(ticket.name).await.unwrap().id, api.id);
    assert_eq!(
        two.session("team/api").await.unwrap().rename("web".parse().unwrap()).await.unwrap().name.as_str(),
        "web"
    );
    on.store(true, Ordering::SeqCst);
    assert_eq!(two.session("web").await.unwrap().restart(None, "x").await.unwrap().name.as_str(), "web");
    assert_eq!(
        two.session("web").await.unwrap().rename("api".parse().unwrap()).await.unwrap().name.as_str(),
        "team/api"
    );
    two.session("team/api").await.unwrap().remove(true).await.unwrap();
    assert!(place.home().names().join("team:api").symlink_metadata().is_err());
    assert_eq!(two.find("api").await.unwrap().id, plain.id);
    two.close().await;
}

#[tokio::test]
async fn a_setting_that_cannot_be_read_refuses_only_what_it_decides() {
    let place = Place::new();
    let naming = Arc::new(|| Err(wharf_model::Failure::new(Code::Invalid, "no such scope")));
    let engine = Engine::open(place.config().with_naming(naming)).await.unwrap();
    let failure = engine.start(of("team", named("api", &["fake:sleep"]))).await.unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (Code::Invalid, "no such scope"));
    engine.start(named("api", &["fake:sleep"])).await.unwrap();
    assert_eq!(
        engine.session("api").await.unwrap().rename("web".parse().unwrap()).await.unwrap().name.as_str(),
        "web"
    );
    engine.close().await;
}

#[tokio::test]
async fn links_of_groups_are_collected_too() {
    let (place, on) = (Place::new(), switch(true));
    let engine = engine(&place, &on).await;
    engine.start(of("team", named("api", &["fake:sleep"]))).await.unwrap();
    let names = place.home().names();
    std::os::unix::fs::symlink("../sessions/0123456789abcdef", names.join("team:gone")).unwrap();
    let items = engine.gc(false, None).await.unwrap();
    assert!(items.iter().any(|item| item.thing == "name team/gone"), "{items:?}");
    assert!(names.join("team:gone").symlink_metadata().is_err());
    assert!(names.join("team:api").symlink_metadata().is_ok());
    engine.close().await;
}
