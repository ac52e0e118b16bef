//! Tests that output is copied to a file exactly, across engines and restarts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use wharf_model::{Code, State};

use crate::place::{DEADLINE, Place, named, state};

async fn holds(path: &Path, expected: &str) {
    let wait = async {
        while std::fs::read(path).unwrap_or_default() != expected.as_bytes() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let done = tokio::time::timeout(DEADLINE, wait).await;
    assert!(done.is_ok(), "{:?} is not {expected:?}", std::fs::read_to_string(path));
}

#[tokio::test]
async fn output_is_copied_exactly_across_engines() {
    let place = Place::new();
    let file = place.dir.path().join("copy");
    std::fs::write(&file, "before\n").unwrap();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    place.fake.print(&session.id, b"one\n");
    engine.session("a").await.unwrap().pipe(Some(file.clone().into()), true).await.unwrap();
    holds(&file, "before\none\n").await;
    engine.close().await;
    drop(engine);
    place.fake.print(&session.id, b"two\n");
    let engine = place.open().await;
    holds(&file, "before\none\ntwo\n").await;
    place.fake.print(&session.id, b"three\n");
    engine.close().await;
    drop(engine);
    // The end comes while nobody looks, and is copied all the same.
    place.fake.print(&session.id, b"four\n");
    place.fake.exit(&session.id, 0);
    let engine = place.open().await;
    holds(&file, "before\none\ntwo\nthree\nfour\n").await;
    state(&engine, "a", State::Exited).await;
    engine.close().await;
    drop(engine);
    place.open().await.close().await;
    holds(&file, "before\none\ntwo\nthree\nfour\n").await;
}

#[tokio::test]
async fn a_spec_can_ask_for_a_copy_and_it_goes_on_after_a_restart() {
    let place = Place::new();
    let file = place.dir.path().join("copy");
    let engine = place.open().await;
    let mut spec = named("a", &["fake:print", "hi"]);
    spec.copy_to = Some(file.clone().into());
    engine.start(spec).await.unwrap();
    engine.session("a").await.unwrap().wait().await.unwrap();
    holds(&file, "hi\n").await;
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    engine.session("a").await.unwrap().restart(None, "x").await.unwrap();
    holds(&file, "hi\nhi\n").await;
    engine.close().await;
}

#[tokio::test]
async fn a_copy_can_begin_now_and_end() {
    let place = Place::new();
    let file = place.dir.path().join("copy");
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    place.fake.print(&session.id, b"not this\n");
    engine.session("a").await.unwrap().pipe(Some(file.clone().into()), false).await.unwrap();
    assert!(engine.find("a").await.unwrap().copy_to.is_some());
    place.fake.print(&session.id, b"this\n");
    holds(&file, "this\n").await;
    engine.session("a").await.unwrap().pipe(None, false).await.unwrap();
    place.fake.print(&session.id, b"nor this\n");
    engine.session("a").await.unwrap().stop(None, "x").await.unwrap();
    holds(&file, "this\n").await;
    assert_eq!(engine.find("a").await.unwrap().copy_to, None);
    let nowhere = Some(place.dir.path().join("no/such/dir").into());
    assert_eq!(engine.session("a").await.unwrap().pipe(nowhere, false).await.unwrap_err().code, Code::Ended);
    engine.close().await;
}

#[tokio::test]
async fn a_follower_reads_across_a_broken_connection_and_a_restart() {
    let place = Place::new();
    let engine = place.open().await;
    let session = engine.start(named("a", &["fake:sleep"])).await.unwrap();
    let mut output = engine.session("a").await.unwrap().output(wharf_model::Offset(0), true).await.unwrap();
    let reader = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(chunk) = output.next().await.unwrap() {
            if let wharf_engine::OutputChunk::Data { bytes, .. } = chunk {
                all.extend(bytes);
            }
        }
        String::from_utf8(all).unwrap()
    });
    place.fake.print(&session.id, b"one ");
    place.fake.break_connection(&session.id);
    place.fake.print(&session.id, b"two ");
    state(&engine, "a", State::Running).await;
    engine.session("a").await.unwrap().restart(None, "x").await.unwrap();
    place.fake.print(&session.id, b"three");
    engine.session("a").await.unwrap().stop(None, "x").await.unwrap();
    assert_eq!(tokio::time::timeout(DEADLINE, reader).await.unwrap().unwrap(), "one two three");
    engine.close().await;
}
