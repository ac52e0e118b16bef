//! Tests that a closed engine leaves no task behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use wharf_backend::faults::{Fault, Op, Times};
use wharf_engine::Engine;
use wharf_model::{Code, Manner, NameScope, Offset};

use crate::place::{Place, named};

#[tokio::test]
async fn no_task_of_an_engine_lives_after_its_close() {
    let place = Place::new();
    let mut config = place.config();
    config.timeouts.call = Duration::from_secs(3);
    // What the engine's tasks share holds this, and each of them holds that.
    let spy = Arc::new(());
    let held = Arc::clone(&spy);
    config.naming = Arc::new(move || {
        let _ = &held;
        Ok(NameScope::Instance)
    });
    let engine = Engine::open(config).await.unwrap();
    engine.start(named("a", &["fake:echo"])).await.unwrap();
    let copy = place.dir.path().join("copy");
    engine.session("a").await.unwrap().pipe(Some(copy.as_path().into()), true).await.unwrap();
    let output = engine.session("a").await.unwrap().output(Offset(0), true).await.unwrap();
    // A message that is typed and never taken, and a probe that nobody waits for any more.
    place.faults.inject(Op::Write, Fault::Hang, Times::Always);
    engine.session("a").await.unwrap().send("hello", Manner::default()).await.unwrap();
    place.faults.called(Op::Write, 1).await;
    place.faults.inject(Op::Probe, Fault::Hang, Times::Always);
    let probes = tokio::spawn({
        let engine = engine.clone();
        async move { engine.backends().await }
    });
    place.faults.called(Op::Probe, 1).await;
    probes.abort();
    assert!(probes.await.unwrap_err().is_cancelled());

    engine.close().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "the engine spawned all that there were");
    assert_eq!(engine.start(named("b", &["fake:echo"])).await.unwrap_err().code, Code::Unreachable);
    assert_eq!(std::fs::read_dir(place.home().names()).unwrap().count(), 1, "a late start left its name");
    drop((engine, output));
    assert_eq!(Arc::strong_count(&spy), 1, "something of the engine outlives it");
}
