//! Every route, with a fake backend behind a real socket.

mod common;

use std::time::Duration;

use common::{TEST_TIMEOUT, World, name, request, until};
use wharf_api::{EnvRequest, GcRequest, LogChunk, ManyRequest, PipeRequest, Selector, Summary};
use wharf_model::{Code, Millis, Offset, Reason, Size, State};

fn named(names: &[&str]) -> ManyRequest {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    ManyRequest { selector: Selector { names, ..Selector::default() }, ..ManyRequest::default() }
}

#[tokio::test]
async fn the_daemon_says_who_it_is() {
    let world = World::new().await;
    world.start("a", &["fake:sleep"]).await;
    let status = world.client.daemon().await.unwrap();
    assert_eq!(status.pid, std::process::id() as i32);
    assert_eq!(status.socket, world.home.socket().into());
    assert_eq!(status.live, 1);
    assert_eq!(status.state_dir, world.home.state().to_owned().into());
    assert!(!status.version.is_empty());
    world.end().await;
}

#[tokio::test]
async fn stopping_the_daemon_leaves_sessions_running() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    world.client.stop_daemon().await.unwrap();
    tokio::time::timeout(TEST_TIMEOUT, world.task).await.unwrap().unwrap();
    assert_eq!(world.fake.live(), [session.id]);
    assert!(!world.home.socket().exists());
    assert_eq!(world.client.daemon().await.unwrap_err().code, Code::Unavailable);
}

#[tokio::test]
async fn a_session_is_started_listed_and_shown() {
    let world = World::new().await;
    let mut wanted = request("a", &["fake:echo"]);
    wanted.spec.group = Some("g".parse().unwrap());
    wanted.spec.labels = [("team".to_owned(), "x y".to_owned())].into();
    let started = world.client.start(&wanted).await.unwrap();
    assert!(started.created);
    let b = world.start("b", &["fake:sleep"]).await;

    let names = async |selector: Selector| -> Vec<String> {
        let sessions = world.client.sessions(&selector).await.unwrap();
        sessions.iter().map(|session| session.name.to_string()).collect()
    };
    assert_eq!(names(Selector::default()).await, ["a", "b"]);
    assert_eq!(names(Selector { all: true, ..Selector::default() }).await, ["a", "b"]);
    assert_eq!(names(Selector { group: Some("g".parse().unwrap()), ..Selector::default() }).await, ["a"]);
    let nobodys = Selector { group: Some("h".parse().unwrap()), ..Selector::default() };
    assert_eq!(world.client.sessions(&nobodys).await.unwrap_err().code, Code::NotFound);
    let label = |value: &str| Selector {
        labels: [("team".to_owned(), value.to_owned())].into(),
        ..Selector::default()
    };
    assert_eq!(names(label("x y")).await, ["a"]);
    assert_eq!(names(label("")).await, ["a"]);
    assert_eq!(names(label("z")).await, [""; 0]);
    assert_eq!(names(named(&["b"]).selector).await, ["b"]);

    let shown = world.client.session("b").await.unwrap();
    assert_eq!(shown.id, b.id);
    assert_eq!(world.client.session(b.id.as_str()).await.unwrap(), shown);
    let listed = world.client.sessions(&Selector::default()).await.unwrap();
    assert_eq!(listed[1], shown);

    let failure = world.client.start(&request("a", &["fake:echo"])).await.unwrap_err();
    assert_eq!(failure.code, Code::NameTaken);
    wanted.ensure = true;
    let again = world.client.start(&wanted).await.unwrap();
    assert!(!again.created);
    assert_eq!(again.session.id, started.session.id);
    world.end().await;
}

#[tokio::test]
async fn the_list_as_text_has_the_fields_that_scripts_rely_on() {
    let world = World::new().await;
    world.start("a", &["fake:sleep"]).await;
    let text = world.client.sessions_raw(&Selector::default()).await.unwrap();
    let list: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for field in ["id", "name", "group", "backend", "state", "pid", "dir", "created", "attached", "exit"] {
        assert!(list[0].get(field).is_some(), "{field} is missing in {list}");
    }
    let full = world.client.sessions(&Selector::default()).await.unwrap();
    let brief = world.client.summaries(&Selector::default()).await.unwrap();
    assert_eq!(brief, [Summary::from(&full[0])]);
    world.end().await;
}

#[tokio::test]
async fn what_is_missing_is_not_found_and_what_is_no_name_is_refused() {
    let world = World::new().await;
    let failure = world.client.session("nobody").await.unwrap_err();
    assert_eq!(failure.code, Code::NotFound);
    assert!(failure.message.contains("nobody"), "{failure}");
    assert_eq!(world.client.session("team/nobody").await.unwrap_err().code, Code::NotFound);
    for bad in ["", ".", "..", "../daemon", "a//b", "a/b/c", "a/..", "a?b", "-rf", "a\nb"] {
        assert_eq!(world.client.session(bad).await.unwrap_err().code, Code::InvalidName, "{bad:?}");
    }
    let failure = world.client.start(&request("a", &["fake:missing"])).await.unwrap_err();
    assert_eq!(failure.code, Code::CommandNotFound);
    assert_eq!(world.client.sessions(&Selector::default()).await.unwrap(), []);
    world.end().await;
}

#[tokio::test]
async fn what_is_typed_comes_back_in_the_log() {
    let world = World::new().await;
    let session = world.start("a", &["fake:echo"]).await;
    let text: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8 | 0x80).collect();
    world.client.write("a", text.clone(), TEST_TIMEOUT).await.unwrap();
    assert!(world.fake.input(&session.id) == text);
    world.client.write("a", &b"\nexit 7\n"[..], TEST_TIMEOUT).await.unwrap();
    let record = world.client.wait("a", Some(TEST_TIMEOUT)).await.unwrap();
    assert_eq!(record.code, Some(7));
    let failure = world.client.write("a", &b"x"[..], TEST_TIMEOUT).await.unwrap_err();
    assert_eq!(failure.code, Code::Ended);

    for (from, follow) in [(0, true), (0, false), (1000, false)] {
        let mut reader = world.client.log("a", Offset(from), follow).await.unwrap();
        let mut read = Vec::new();
        while let Some(chunk) = tokio::time::timeout(TEST_TIMEOUT, reader.next()).await.unwrap().unwrap() {
            let LogChunk::Data { offset, bytes } = chunk else { panic!("a gap: {chunk:?}") };
            assert_eq!(offset, Offset(from + read.len() as u64));
            read.extend_from_slice(&bytes);
        }
        assert_eq!(reader.position(), record.log_end);
        assert!(read.starts_with(&text[from as usize..]), "from {from}: {} bytes", read.len());
    }
    world.end().await;
}

#[tokio::test]
async fn a_log_that_is_followed_brings_what_is_printed_later() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    let mut reader = world.client.log("a", Offset(0), true).await.unwrap();
    for text in ["one", "two"] {
        world.fake.print(&session.id, text.as_bytes());
        let chunk = tokio::time::timeout(TEST_TIMEOUT, reader.next()).await.unwrap().unwrap();
        assert!(matches!(chunk, Some(LogChunk::Data { bytes, .. }) if bytes == text));
    }
    // Without following, the answer ends where the log does.
    let mut still = world.client.log("a", Offset(3), false).await.unwrap();
    assert!(matches!(still.next().await.unwrap(), Some(LogChunk::Data { bytes, .. }) if bytes == "two"));
    assert_eq!(still.next().await.unwrap(), None);
    // A daemon that ends says so, and who follows can ask the next one.
    world.stopper.stop();
    let failure = tokio::time::timeout(TEST_TIMEOUT, reader.next()).await.unwrap().unwrap_err();
    assert_eq!(failure.code, Code::Unreachable);
    world.end().await;
}

#[tokio::test]
async fn a_wait_has_a_timeout_and_ends_with_the_daemon() {
    let world = World::new().await;
    world.start("a", &["fake:sleep"]).await;
    let failure = world.client.wait("a", Some(Duration::from_millis(20))).await.unwrap_err();
    assert_eq!(failure.code, Code::Timeout);
    let client = world.client.clone();
    let waiting = tokio::spawn(async move { client.wait("a", None).await });
    world.client.daemon().await.unwrap();
    world.stopper.stop();
    let failure = tokio::time::timeout(TEST_TIMEOUT, waiting).await.unwrap().unwrap().unwrap_err();
    // The second, where the end came before the question.
    assert!(matches!(failure.code, Code::Unreachable | Code::Unavailable), "{failure}");
    world.end().await;
}

#[tokio::test]
async fn size_name_and_variables_change() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    world.client.resize("a", Size { cols: 132, rows: 50 }).await.unwrap();
    until("the new size is known", async || {
        world.client.session("a").await.unwrap().size == Size { cols: 132, rows: 50 }
    })
    .await;
    let renamed = world.client.rename("a", &name("b")).await.unwrap();
    assert_eq!((renamed.id, renamed.name), (session.id, name("b")));
    assert_eq!(world.client.session("a").await.unwrap_err().code, Code::NotFound);

    let change = EnvRequest { set: vec![("COLOUR".into(), "blue\n$(x)".into())], unset: Vec::new() };
    world.client.set_env("b", &change).await.unwrap();
    let env = world.client.env("b").await.unwrap();
    assert!(env.contains(&("COLOUR".into(), "blue\n$(x)".into())), "{env:?}");
    world.end().await;
}

#[tokio::test]
async fn output_is_copied_to_a_file() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    world.fake.print(&session.id, b"before ");
    let file = world.root.path().join("copy");
    let to = PipeRequest { file: Some(file.clone().into()), from_start: true };
    world.client.pipe("a", &to).await.unwrap();
    world.fake.print(&session.id, b"after");
    until("the copy is complete", async || std::fs::read(&file).is_ok_and(|text| text == b"before after"))
        .await;
    world.client.pipe("a", &PipeRequest::default()).await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn a_pipe_sessions_input_is_closed() {
    let world = World::new().await;
    let mut wanted = request("a", &["fake:echo"]);
    wanted.spec.tty = false;
    world.client.start(&wanted).await.unwrap();
    world.client.close_input("a").await.unwrap();
    assert_eq!(world.client.wait("a", Some(TEST_TIMEOUT)).await.unwrap().code, Some(0));
    world.end().await;
}

#[tokio::test]
async fn a_session_says_what_it_uses() {
    let world = World::new().await;
    let session = world.start("a", &["fake:sleep"]).await;
    world.fake.print(&session.id, b"12345");
    assert_eq!(world.client.stats("a").await.unwrap().log_end, Offset(5));
    world.end().await;
}

#[tokio::test]
async fn sessions_are_stopped_killed_restarted_and_removed() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        world.start(name, &["fake:sleep"]).await;
    }
    world.start("stubborn", &["fake:ignore-term"]).await;

    let outcomes = world.client.stop(&named(&["b", "a"])).await.unwrap();
    let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    for outcome in &outcomes {
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.exit.as_ref().unwrap().reason, Reason::Stopped);
    }
    let request = ManyRequest { grace: Some(Millis(10)), ..named(&["stubborn"]) };
    let outcomes = world.client.stop(&request).await.unwrap();
    assert_eq!(outcomes[0].exit.as_ref().unwrap().signal, Some(9));

    // Of all, those that run.
    let all = Selector { all: true, ..Selector::default() };
    let outcomes =
        world.client.kill(&ManyRequest { selector: all.clone(), ..ManyRequest::default() }).await.unwrap();
    assert_eq!(outcomes.len(), 1);
    assert_eq!((outcomes[0].name.as_str(), outcomes[0].exit.as_ref().unwrap().reason), ("c", Reason::Killed));

    let outcomes = world.client.restart(&named(&["a"])).await.unwrap();
    assert_eq!(outcomes[0].failure, None);
    let again = world.client.session("a").await.unwrap();
    assert_eq!((again.state, again.run), (State::Running, 2));

    let outcomes = world.client.remove(&named(&["a", "b"])).await.unwrap();
    assert_eq!(outcomes[0].failure.as_ref().unwrap().code, Code::Running);
    assert_eq!(outcomes[1].failure, None);
    let request = ManyRequest { selector: all, force: true, ..ManyRequest::default() };
    world.client.remove(&request).await.unwrap();
    assert_eq!(world.client.sessions(&Selector::default()).await.unwrap(), []);
    assert_eq!(world.fake.live(), []);
    world.end().await;
}

#[tokio::test]
async fn a_signal_reaches_the_command() {
    let world = World::new().await;
    world.start("a", &["fake:sleep"]).await;
    let outcomes = world.client.signal(&ManyRequest { signal: 15, ..named(&["a"]) }).await.unwrap();
    assert_eq!(outcomes[0].failure, None);
    assert_eq!(world.client.wait("a", Some(TEST_TIMEOUT)).await.unwrap().signal, Some(15));
    let failure = world.client.signal(&ManyRequest { signal: 999, ..named(&["a"]) }).await.unwrap_err();
    assert_eq!(failure.code, Code::Invalid);
    world.end().await;
}

#[tokio::test]
async fn one_name_that_means_nothing_stops_nothing_for_the_others() {
    let world = World::new().await;
    world.start("a", &["fake:sleep"]).await;
    world.start("b", &["fake:sleep"]).await;
    assert_eq!(world.client.stop(&ManyRequest::default()).await.unwrap_err().code, Code::Invalid);
    assert_eq!(world.client.stop(&named(&["nobody", "neither"])).await.unwrap_err().code, Code::NotFound);
    let outcomes = world.client.stop(&named(&["a", "nobody", "b", "a"])).await.unwrap();
    let told: Vec<_> = outcomes
        .iter()
        .map(|one| (one.name.as_str(), one.failure.as_ref().map(|failure| failure.code)))
        .collect();
    assert_eq!(told, [("a", None), ("nobody", Some(Code::NotFound)), ("b", None)]);
    assert!(world.fake.live().is_empty());
    world.end().await;
}

#[tokio::test]
async fn the_instance_answers_for_itself() {
    let world = World::new().await;
    let backends = world.client.backends().await.unwrap();
    assert_eq!(backends.len(), 1);
    assert_eq!((backends[0].name.as_str(), backends[0].default, backends[0].available), ("fake", true, true));
    assert!(!world.client.doctor().await.unwrap().is_empty());

    world.start("old", &["fake:exit", "0"]).await;
    world.client.wait("old", Some(TEST_TIMEOUT)).await.unwrap();
    let later = Millis(u64::from(u32::MAX) * 1_000);
    let dry = GcRequest { dry_run: true, ended_before: Some(later) };
    let items = world.client.gc(&dry).await.unwrap();
    assert!(items.iter().any(|item| item.thing.contains("old")), "{items:?}");
    assert_eq!(world.client.sessions(&Selector::default()).await.unwrap().len(), 1);
    world.end().await;
}
