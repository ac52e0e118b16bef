//! Tests garbage collection and the checks of `doctor`.

use std::fs::FileTimes;
use std::time::{Duration, SystemTime};

use wharf_backend::faults::{Fault, Op, Times};
use wharf_engine::Failure;
use wharf_model::{Code, Millis};

use crate::place::{Place, named};

fn later() -> Millis {
    Millis::from(SystemTime::now() + Duration::from_secs(60))
}

#[tokio::test]
async fn only_what_is_over_and_old_is_collected() {
    let place = Place::new();
    let engine = place.open().await;
    engine.start(named("live", &["fake:sleep"])).await.unwrap();
    let ended = engine.start(named("ended", &["fake:exit", "0"])).await.unwrap();
    engine.session("ended").await.unwrap().wait().await.unwrap();
    assert!(engine.gc(false, None).await.unwrap().is_empty());
    assert!(engine.gc(false, Some(Millis(1))).await.unwrap().is_empty());
    let dry = engine.gc(true, Some(later())).await.unwrap();
    assert_eq!(dry.len(), 1);
    assert!(engine.find("ended").await.is_ok(), "a dry run removes nothing");
    let items = engine.gc(false, Some(later())).await.unwrap();
    assert_eq!(items, dry);
    assert_eq!(items[0].what, "removed");
    assert!(items[0].thing.contains(ended.id.as_str()));
    assert!(engine.find("ended").await.is_err());
    assert_eq!(place.fake.live().len(), 1);
    engine.close().await;
}

#[tokio::test]
async fn what_cannot_be_asked_about_is_kept() {
    let place = Place::new();
    let engine = place.open().await;
    let ended = engine.start(named("ended", &["fake:exit", "0"])).await.unwrap();
    engine.session("ended").await.unwrap().wait().await.unwrap();
    place.faults.inject(
        Op::Sweep,
        Fault::Fail(Failure::new(Code::Unreachable, "cannot tell")),
        Times::Always,
    );
    let items = engine.gc(false, Some(later())).await.unwrap();
    assert!(items.iter().all(|item| item.what == "kept" && item.why == "cannot tell"), "{items:?}");
    assert!(place.home().session(&ended.id).exists());
    assert_eq!(
        engine.session("ended").await.unwrap().remove(false).await.unwrap_err().code,
        Code::Unreachable
    );
    assert!(engine.find("ended").await.is_ok());
    engine.close().await;
}

#[tokio::test]
async fn old_directories_without_a_ticket_and_dangling_names_go() {
    let place = Place::new();
    let engine = place.open().await;
    let (young, old) =
        (place.home().sessions().join("0123456789abcdef"), place.home().sessions().join("0123456789abcdeg"));
    std::fs::create_dir(&young).unwrap();
    std::fs::create_dir(&old).unwrap();
    let hours_ago = SystemTime::now() - Duration::from_secs(7_200);
    std::fs::File::open(&old).unwrap().set_times(FileTimes::new().set_modified(hours_ago)).unwrap();
    std::fs::create_dir(place.home().sessions().join("not-ours")).unwrap();
    std::os::unix::fs::symlink("../sessions/0123456789abcdeh", place.home().names().join("dangling"))
        .unwrap();
    let items = engine.gc(false, None).await.unwrap();
    let of = |part: &str| items.iter().find(|item| item.thing.contains(part)).unwrap().what.clone();
    assert_eq!(
        (of("abcdef"), of("abcdeg"), of("not-ours"), of("dangling")),
        ("kept".to_owned(), "removed".to_owned(), "kept".to_owned(), "removed".to_owned(),)
    );
    assert!(young.exists() && !old.exists() && place.home().sessions().join("not-ours").exists());
    assert!(place.home().names().join("dangling").symlink_metadata().is_err());
    engine.close().await;
}

#[tokio::test]
async fn checks_and_backends_answer_also_when_one_hangs() {
    let place = Place::new();
    let mut config = place.config();
    config.timeouts.call = Duration::from_millis(100);
    let engine = wharf_engine::Engine::open(config).await.unwrap();
    assert!(engine.backends().await[0].probe.available);
    place.faults.inject(Op::Probe, Fault::Hang, Times::Always);
    assert!(!engine.backends().await[0].probe.available);
    let checks = engine.checks().await;
    assert!(checks.iter().any(|check| check.name == "state directory" && check.ok), "{checks:?}");
    assert!(checks.iter().any(|check| check.name == "backend fake" && !check.ok));
    place.faults.clear();
    engine.close().await;
}
