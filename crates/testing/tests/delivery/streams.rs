//! Tests that JSON streams, told events and hooks become numbered events and move the state.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use wharf_model::{Code, Event, Failure, State};

use crate::ground::everywhere;
use crate::place::{Place, TEST_TIMEOUT};

everywhere! {
    a_stream_of_json_becomes_events
    events_are_numbered_kept_and_move_the_state
    a_hook_is_translated_by_the_profile
}

async fn events(place: &Place, name: &str, follow: bool) -> Vec<Event> {
    let mut stream = place.engine.session(name).await.unwrap().events(0).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next(follow).await.unwrap() {
        events.push(event);
    }
    events
}

/// A program of this name that prints these lines.
async fn prints(
    place: &Place,
    program: &str,
    lines: &[serde_json::Value],
    arguments: &[&str],
) -> Result<(), Failure> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
    let (data, path) = (place.dir().join("lines"), place.dir().join(program));
    std::fs::write(&data, text).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\nexec cat {}\n", data.display())).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = place.spec("s", &[&[path.to_str().unwrap()], arguments].concat());
    spec.tty = false;
    place.engine.start(spec).await.map(drop)
}

async fn a_stream_of_json_becomes_events(place: Place) {
    let long = "x".repeat(3 << 20);
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "c0ffee"}),
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "I will look."}]}}),
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]}}),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": long}]}}),
        json!({"type": "something_new", "of": "tomorrow"}),
        json!({"type": "result", "subtype": "success", "result": "done", "total_cost_usd": 0.01, "usage": {"input_tokens": 7, "output_tokens": 3}}),
    ];
    let arguments = ["-p", "--output-format", "stream-json", "--verbose"];
    if let Err(failure) = prints(&place, "claude", &lines, &arguments).await {
        // A pane is a terminal: there are no pipes, and that is said.
        assert_eq!((failure.code, place.has_pipes()), (Code::Unsupported, false), "{failure:?}");
        return place.end().await;
    }
    place
        .engine
        .session("s")
        .await
        .unwrap()
        .until(wharf_model::Until::Exit, Some(TEST_TIMEOUT))
        .await
        .unwrap();
    let told: Vec<Event> =
        events(&place, "s", true).await.into_iter().filter(|event| event.source == "stream").collect();
    let kinds: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
    for kind in ["assistant", "tool.started", "tool.ended", "usage", "turn.ended", "other"] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
    assert!(told.windows(2).all(|pair| pair[0].offset <= pair[1].offset), "offsets go with the log");
    place.end().await;
}

async fn events_are_numbered_kept_and_move_the_state(mut place: Place) {
    let session = place.start("a", &["cat"]).await;
    let told = place
        .engine
        .session(session.id.as_str())
        .await
        .unwrap()
        .tell("sidecar", "turn.started", json!({"prompt": "x"}))
        .await
        .unwrap();
    assert_eq!(told.kind, "turn.started");
    place.state("a", State::Working).await;
    let shown = place.engine.find("a").await.unwrap();
    assert_eq!((shown.state, shown.source), (State::Working, wharf_model::Source::Agent));
    place
        .engine
        .session(session.id.as_str())
        .await
        .unwrap()
        .tell("sidecar", "tomorrows.kind", json!({"any": [1, 2]}))
        .await
        .unwrap();
    place
        .engine
        .session(session.id.as_str())
        .await
        .unwrap()
        .tell("sidecar", "permission.asked", json!({}))
        .await
        .unwrap();
    place.state("a", State::Asking).await;
    let before = events(&place, "a", false).await;
    place.again().await;
    let mut after = events(&place, "a", false).await;
    after.truncate(before.len());
    assert_eq!(after, before);
    let numbers: Vec<u64> = before.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=before.len() as u64).collect::<Vec<_>>());
    assert!(before.iter().any(|event| event.kind == "tomorrows.kind"));
    place.end().await;
}

async fn a_hook_is_translated_by_the_profile(place: Place) {
    let session = place.start("a", &["cat"]).await;
    let session = place.engine.session(session.id.as_str()).await.unwrap();
    let hook = |payload| session.hook(Some("claude"), payload);
    hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": "do it", "session_id": "c"})).await.unwrap();
    place.state("a", State::Working).await;
    hook(json!({"hook_event_name": "Stop", "session_id": "c"})).await.unwrap();
    place.state("a", State::Idle).await;
    hook(json!({"hook_event_name": "NeverHeardOf"})).await.unwrap();
    let kinds: Vec<String> = events(&place, "a", false)
        .await
        .into_iter()
        .filter(|event| event.source == "hook")
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, ["turn.started", "turn.ended", "other"]);
    place.end().await;
}
