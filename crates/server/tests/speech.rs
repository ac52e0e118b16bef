//! Messages, screens, states and events over the socket, with a fake backend behind it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::{TEST_TIMEOUT, World, connect, raw, until};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use wharf_api::{Await, Format, HookRequest, SendRequest, What};
use wharf_model::{Code, Manner, Progress, State, Ticket, Until};

fn message(text: &str) -> SendRequest {
    SendRequest { text: text.into(), manner: Manner::default() }
}

fn ticket(world: &World, id: &wharf_model::SessionId) -> Ticket {
    serde_json::from_slice(&std::fs::read(world.home.session(id).join("ticket.json")).unwrap()).unwrap()
}

#[tokio::test]
async fn a_message_has_a_receipt() {
    let world = World::new().await;
    let session = world.start("a", &["fake:echo"]).await;
    let receipt = world.client.send("a", &message("hello"), Await::Confirmed, TEST_TIMEOUT).await.unwrap();
    assert_eq!((receipt.status, &receipt.session), (Progress::Confirmed, &session.id));
    assert_eq!(world.fake.input(&session.id), b"hello\r");
    assert_eq!(world.client.receipt(&receipt.id).await.unwrap(), receipt);
    assert_eq!(
        world.client.await_receipt(&receipt.id, Await::Submitted, TEST_TIMEOUT).await.unwrap(),
        receipt
    );
    assert_eq!(world.client.messages("a").await.unwrap(), std::slice::from_ref(&receipt));
    assert_eq!(world.client.cancel(&receipt.id).await.unwrap().status, Progress::Confirmed, "it is over");

    for unknown in ["0000000000000000.1", "nothing", &format!("{}.99", session.id)] {
        assert_eq!(world.client.receipt(unknown).await.unwrap_err().code, Code::NotFound, "{unknown}");
    }
    let bad = SendRequest {
        manner: Manner { submit: Some("Nonsense".into()), ..Manner::default() },
        ..message("x")
    };
    assert_eq!(
        world.client.send("a", &bad, Await::Accepted, TEST_TIMEOUT).await.unwrap_err().code,
        Code::Invalid
    );
    let answer = raw(
        &world.home.socket(),
        "GET /v1/messages/x?wait=never HTTP/1.1\r\nhost: wharf\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(answer.status, 400);
    world.end().await;
}

#[tokio::test]
async fn a_screen_is_captured_and_followed() {
    let world = World::new().await;
    world.start("a", &["fake:echo"]).await;
    world.client.write("a", &b"hello\r\n"[..], TEST_TIMEOUT).await.unwrap();
    let capture = async |format| world.client.capture("a", What::Screen, format).await.unwrap();
    until("the text is on the screen", async || capture(Format::Plain).await.contains("hello")).await;
    for format in [Format::Ansi, Format::Html, Format::Json] {
        assert!(capture(format).await.contains("hello"), "{format}");
    }
    let whole = world.client.screen_changes("a", None, Duration::ZERO).await.unwrap();
    assert!(whole.whole && whole.rows.iter().any(|row| row.text.contains("hello")));
    let quiet =
        world.client.screen_changes("a", Some(&whole.cursor), Duration::from_millis(50)).await.unwrap();
    assert!(quiet.is_empty(), "{quiet:?}");
    let (changes, ()) =
        tokio::join!(world.client.screen_changes("a", Some(&whole.cursor), TEST_TIMEOUT), async {
            world.client.clone().write("a", &b"more\r\n"[..], TEST_TIMEOUT).await.unwrap();
        });
    let changes = changes.unwrap();
    assert!(!changes.whole && changes.rows.iter().any(|row| row.text.contains("more")), "{changes:?}");

    let (painted, offset) = world.client.repaint("a", whole.size, TEST_TIMEOUT).await.unwrap();
    assert!(String::from_utf8_lossy(&painted).contains("hello") && offset.0 > 0);
    let other = wharf_model::Size { cols: 7, rows: 5 };
    assert_eq!(world.client.repaint("a", other, TEST_TIMEOUT).await.unwrap_err().code, Code::Busy);
    for bad in ["what=last", "what=all&lines=1", "format=pdf"] {
        let target =
            format!("GET /v1/sessions/a/screen?{bad} HTTP/1.1\r\nhost: wharf\r\nconnection: close\r\n\r\n");
        assert_eq!(raw(&world.home.socket(), target).await.status, 400, "{bad}");
    }
    world.end().await;
}

#[tokio::test]
async fn states_are_explained_and_waited_for() {
    let world = World::new().await;
    world.start("a", &["fake:echo"]).await;
    let why = world.client.explain("a").await.unwrap();
    assert_eq!(why.profile, "generic");
    assert_eq!(world.client.question("a").await.unwrap(), None);
    assert_eq!(world.client.approve("a", None, TEST_TIMEOUT).await.unwrap_err().code, Code::NotAsking);
    let soon = Some(Duration::from_millis(50));
    let failure = world.client.until("a", &Until::State(State::Asking), soon).await.unwrap_err();
    assert_eq!(failure.code, Code::Timeout);
    let (met, ()) = tokio::join!(world.client.until("a", &Until::Exit, Some(TEST_TIMEOUT)), async {
        world.client.clone().write("a", &b"\nexit 7\n"[..], TEST_TIMEOUT).await.unwrap();
    });
    assert_eq!(met.unwrap().session.state, State::Exited);
    let failure = world.client.until("a", &Until::State(State::Idle), Some(TEST_TIMEOUT)).await.unwrap_err();
    assert_eq!(failure.code, Code::Ended);
    assert!(world.client.agents(None).await.unwrap().iter().any(|agent| agent.name == "claude"));
    world.end().await;
}

#[tokio::test]
async fn events_come_as_lines_or_as_server_sent_events() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    let hook = |token: &str| HookRequest {
        session: "a".into(),
        token: token.into(),
        agent: Some("claude".into()),
        payload: json!({ "hook_event_name": "Stop" }),
    };
    assert_eq!(world.client.hook(&hook("wrong")).await.unwrap_err().code, Code::Forbidden);
    world.client.hook(&hook(&ticket(&world, &session.id).token)).await.unwrap();

    let mut lines = world.client.events("a", 0, true).await.unwrap();
    let mut last = 0;
    loop {
        let event = tokio::time::timeout(TEST_TIMEOUT, lines.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(event.seq, last + 1);
        last = event.seq;
        if event.source == "hook" {
            assert_eq!(event.kind, "turn.ended");
            break;
        }
    }
    let head = format!(
        "GET /v1/sessions/a/events HTTP/1.1\r\nhost: wharf\r\naccept: text/event-stream\r\nlast-event-id: {}\r\n\r\n",
        last - 1
    );
    let mut stream = BufReader::new(connect(&world.home.socket()));
    stream.get_mut().write_all(head.as_bytes()).await.unwrap();
    let mut seen = String::new();
    while !seen.contains("\n\n") {
        tokio::time::timeout(TEST_TIMEOUT, stream.read_line(&mut seen)).await.unwrap().unwrap();
    }
    assert!(seen.contains("content-type: text/event-stream"), "{seen}");
    assert!(seen.contains(&format!("id: {last}\ndata: {{\"seq\":{last},")), "{seen}");
    world
        .client
        .kill(&wharf_api::ManyRequest {
            selector: wharf_api::Selector { names: vec!["a".into()], ..Default::default() },
            ..Default::default()
        })
        .await
        .unwrap();
    while let Some(event) = tokio::time::timeout(TEST_TIMEOUT, lines.next()).await.unwrap().unwrap() {
        assert_eq!(event.seq, last + 1);
        last = event.seq;
    }
    world.end().await;
}

#[tokio::test]
async fn a_flood_of_events_is_bounded_and_slows_nobody() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    world.start("b", &["fake:echo"]).await;
    let token = ticket(&world, &session.id).token;
    let mut teller = connect(&world.home.events_socket());
    let hello = json!({ "v": 1, "session": session.id, "token": token });
    teller.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let flood = tokio::spawn(async move {
        let line = format!("{}\n", json!({ "kind": "noise", "data": "x".repeat(1000) }));
        for _ in 0..2_000 {
            teller.write_all(line.as_bytes()).await.unwrap();
        }
        // Too long for anybody, and then one that counts.
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..17 {
            teller.write_all(&piece).await.unwrap();
        }
        teller.write_all(b"\n{\"kind\":\"last\"}\n").await.unwrap();
    });
    // Others are served meanwhile.
    for _ in 0..20 {
        tokio::time::timeout(TEST_TIMEOUT, world.client.session("b")).await.unwrap().unwrap();
    }
    tokio::time::timeout(Duration::from_secs(60), flood).await.unwrap().unwrap();
    let mut events = world.client.events("a", 0, true).await.unwrap();
    let mut kinds = std::collections::HashMap::new();
    loop {
        let event = tokio::time::timeout(TEST_TIMEOUT, events.next()).await.unwrap().unwrap().unwrap();
        *kinds.entry(event.kind.clone()).or_insert(0) += 1;
        if event.kind == "last" {
            break;
        }
    }
    assert_eq!((kinds["noise"], kinds["cut"]), (2_000, 1));
    world.end().await;
}

#[tokio::test]
async fn whoever_tells_too_fast_is_read_more_slowly() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    let (reader, mut teller) = connect(&world.home.events_socket()).into_split();
    let hello = json!({ "v": 1, "session": session.id, "token": ticket(&world, &session.id).token });
    // Lines that are no events cost next to nothing, and count all the same: 4,000 at once, and 1,000 in a second.
    let told = format!("{hello}\n{}{}\n", "x\n".repeat(5_500), json!({ "kind": "last", "ack": true }));
    let begun = std::time::Instant::now();
    let telling = tokio::spawn(async move { teller.write_all(told.as_bytes()).await });
    let (mut reader, mut answer) = (BufReader::new(reader), String::new());
    let read = tokio::time::timeout(TEST_TIMEOUT, reader.read_line(&mut answer));
    read.await.expect("the last one is heard").unwrap();
    assert!(answer.contains("\"event\":"), "{answer}");
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(1), "5,500 lines were taken within {took:?}");
    telling.await.unwrap().unwrap();
    world.end().await;
}

#[tokio::test]
async fn an_engine_without_a_daemon_has_its_events_socket() {
    use std::sync::Arc;
    use wharf_backend::fake::FakeBackend;
    use wharf_engine::{Config, Engine};
    use wharf_model::{Home, Spec};

    let root = tempfile::tempdir().unwrap();
    let home = Home::below(root.path());
    let engine = Engine::open(Config::new(home.clone(), vec![Arc::new(FakeBackend::new())])).await.unwrap();
    let events = wharf_server::EventsSocket::open(&engine).unwrap();
    let session = engine.start(Spec::new(["fake:echo"], "/")).await.unwrap();
    let named = engine.session(session.id.as_str()).await.unwrap().env().await.unwrap();
    let (_, path) = named.into_iter().find(|(name, _)| name.as_bytes() == b"WHARF_EVENTS").unwrap();
    let ticket = home.session(&session.id).join("ticket.json");
    let ticket: Ticket = serde_json::from_slice(&std::fs::read(ticket).unwrap()).unwrap();
    let mut stream = BufReader::new(tokio::net::UnixStream::connect(path.as_path()).await.unwrap());
    let hello = json!({ "v": 1, "session": session.id, "token": ticket.token, "ack": true });
    let told = json!({ "v": 1, "kind": "made.up", "data": 7, "ack": true });
    stream.write_all(format!("{hello}\n{told}\n").as_bytes()).await.unwrap();
    let mut answers = String::new();
    for _ in 0..2 {
        tokio::time::timeout(TEST_TIMEOUT, stream.read_line(&mut answers)).await.unwrap().unwrap();
    }
    assert!(!answers.contains("error"), "{answers}");
    let mut all = engine.session(session.id.as_str()).await.unwrap().events(0).await.unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = all.next(false).await.unwrap() {
        kinds.push((event.source, event.kind));
    }
    assert!(kinds.contains(&("sidecar".to_owned(), "made.up".to_owned())), "{kinds:?}");
    // Its limits are those of the daemon: so many connections for one session, and no more.
    let mut many = Vec::new();
    let refused = loop {
        let mut stream = BufReader::new(tokio::net::UnixStream::connect(path.as_path()).await.unwrap());
        stream.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(TEST_TIMEOUT, stream.read_line(&mut answer)).await.unwrap().unwrap();
        if answer.contains("exhausted") {
            break many.len();
        }
        assert!(many.len() < 100, "{answer}");
        many.push(stream);
    };
    assert_eq!(refused, 63, "the first one has a place too");
    drop((many, stream));
    events.close().await;
    assert!(!path.as_path().exists(), "it takes its file along");
    engine.close().await;
}
