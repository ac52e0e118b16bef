//! Tests that ten thousand ended sessions slow nothing and stay within memory.

use std::time::{Duration, Instant};

use wharf_engine::Filter;
use wharf_model::{ExitRecord, Home, Millis, Offset, Reason, SessionId, State};
use wharf_store::{SessionRow, Store};

use crate::place::{Place, named};

fn ended(number: u64) -> SessionRow {
    SessionRow {
        id: SessionId::new(Millis(1_000_000 + number), number),
        name: format!("old-{number}").parse().unwrap(),
        group: None,
        labels: std::collections::BTreeMap::default(),
        backend: "fake".to_owned(),
        state: State::Exited,
        created: Millis(1_000_000 + number),
        run: 1,
        attempts: 0,
        exit: Some(ExitRecord {
            code: Some(0),
            signal: None,
            oom: false,
            limit: None,
            reason: Reason::Exited,
            by: None,
            started: Millis(1),
            ended: Millis(2_000_000 + number),
            log_end: Offset(0),
            leftovers: 0,
            survivors: 0,
            unsure: false,
        }),
    }
}

/// Enough to show what grows with the history.
const COUNT: u64 = 10_000;

#[tokio::test]
async fn ten_thousand_ended_sessions_slow_nothing() {
    let place = Place::new();
    let engine = place.open().await;
    let model = engine.start(named("model", &["fake:exit", "0"])).await.unwrap();
    engine.session("model").await.unwrap().wait().await.unwrap();
    engine.close().await;
    drop(engine);
    let ticket = std::fs::read(place.home().session(&model.id).join(Home::TICKET)).unwrap();
    let ticket: wharf_model::Ticket = serde_json::from_slice(&ticket).unwrap();
    let (store, _) = Store::open(&place.home().store()).unwrap();
    for number in 0..COUNT {
        let row = ended(number);
        // The others are only counted: making directories is what takes the time here.
        if (10..COUNT - 1_100).contains(&number) {
            store.put(row);
            continue;
        }
        let dir = place.home().session(&row.id);
        std::fs::create_dir(&dir).unwrap();
        let mut ticket = ticket.clone();
        (ticket.id, ticket.name, ticket.dir) = (row.id.clone(), row.name.clone(), dir.clone().into());
        std::fs::write(dir.join(Home::TICKET), serde_json::to_vec(&ticket).unwrap()).unwrap();
        store.put(row);
    }
    store.flush(Duration::from_secs(30));
    drop(store);

    let begun = Instant::now();
    let engine = place.open().await;
    let opened = begun.elapsed();
    let begun = Instant::now();
    let listed = engine.list(&Filter::default());
    let took = begun.elapsed();
    assert_eq!(listed.len(), 1_000, "the newest thousand are in memory");
    assert!(opened < Duration::from_secs(3), "opening took {opened:?}");
    assert!(took < Duration::from_millis(50), "listing took {took:?}");
    // The older ones are found all the same, by name and by id.
    let old = engine.find("old-3").await.unwrap();
    assert_eq!((old.state, old.exit.as_ref().unwrap().code), (State::Exited, Some(0)));
    assert_eq!(engine.find(ended(4).id.as_str()).await.unwrap().name.as_str(), "old-4");
    assert_eq!(engine.session("old-5").await.unwrap().wait().await.unwrap().code, Some(0));
    // And can be started again, or give up their names.
    let again = engine.session("old-6").await.unwrap().restart(None, "x").await.unwrap();
    assert_eq!((again.run, again.id.clone()), (2, ended(6).id));
    let new = engine.start(named("old-7", &["fake:sleep"])).await.unwrap();
    assert_eq!(engine.find("old-7").await.unwrap().id, new.id);
    engine.close().await;
}

#[tokio::test]
async fn memory_holds_the_newest_thousand() {
    let place = Place::new();
    let engine = place.open().await;
    for number in 0..1_050 {
        engine.start(named(&format!("s-{number}"), &["fake:exit", "0"])).await.unwrap();
        engine.session(&format!("s-{number}")).await.unwrap().wait().await.unwrap();
    }
    assert_eq!(engine.list(&Filter::default()).len(), 1_000);
    assert_eq!(engine.find("s-0").await.unwrap().exit.as_ref().unwrap().code, Some(0));
    engine.close().await;
}
