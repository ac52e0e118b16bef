//! What a command from inside a session may do.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Reply, TEST_TIMEOUT, World, name, raw, request, until};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use wharf_api::{
    Await, Client, GcRequest, HookAction, HookSettings, ManyRequest, PruneRequest, Selector, SendRequest,
};
use wharf_backend::fake::FakeBackend;
use wharf_backend::{Adoption, Backend, Connection, Launch, Library, Probe, Result};
use wharf_model::{
    Capabilities, Code, Container, EngineVariables, ImageSummary, Manner, Offset, ProcessIdentity, State,
    Ticket,
};

/// A fake in which this test process runs inside the sessions that have `inside` in their name. Those with `confined` in it
/// are in a container.
struct Inside(FakeBackend, Shelf);

/// Images, and which engines callers have named for them.
#[derive(Default, Clone)]
struct Shelf(Arc<Mutex<Vec<Option<EngineVariables>>>>);

#[async_trait::async_trait]
impl Library for Shelf {
    async fn images(&self, caller: Option<&EngineVariables>) -> Result<Vec<ImageSummary>> {
        self.0.lock().unwrap().push(caller.cloned());
        Ok(Vec::new())
    }

    async fn prune(&self, caller: Option<&EngineVariables>, _: bool, _: bool) -> Result<Vec<ImageSummary>> {
        self.images(caller).await
    }

    async fn remove(&self, caller: Option<&EngineVariables>, _: &str) -> Result<()> {
        self.images(caller).await.map(drop)
    }
}

#[async_trait::async_trait]
impl Backend for Inside {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn probe(&self) -> Probe {
        self.0.probe().await
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        let (mut ticket, connection) = self.0.start(launch).await?;
        if ticket.name.as_str().contains("inside") {
            let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
            let start = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
            let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
            let identity = ProcessIdentity {
                pid: std::process::id() as i32,
                start: start.parse().unwrap(),
                boot: boot.trim().to_owned(),
                namespace: None,
            };
            ticket.command = Some(identity);
        }
        if ticket.name.as_str().contains("confined") {
            ticket.spec.container = Some(Box::new(Container::of("image")));
        }
        Ok((ticket, connection))
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        self.0.adopt(ticket).await
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        self.0.list().await
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        self.0.sweep(ticket).await
    }

    fn library(&self) -> Option<&dyn Library> {
        Some(&self.1)
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

async fn world() -> World {
    world_with(Shelf::default()).await
}

async fn world_with(shelf: Shelf) -> World {
    let fake = FakeBackend::new();
    World::with(fake.clone(), Arc::new(Inside(fake, shelf))).await
}

/// A connection that is made once this process is inside a session: who asks is found when it connects.
async fn inside(world: &World) -> Client {
    Client::connect(world.home.socket()).await.unwrap()
}

/// Every route, asked about a session that is another's: `{key}` is that one, `{id}` a message to it.
const REFUSED: &[(&str, &str, &str)] = &[
    ("post", "/v1/daemon/stop", ""),
    ("post", "/v1/sessions/{key}/write", "x"),
    ("post", "/v1/sessions/{key}/close-input", ""),
    ("post", "/v1/sessions/{key}/resize", r#"{"cols":90,"rows":30}"#),
    ("post", "/v1/sessions/{key}/rename", r#"{"name":"mine"}"#),
    ("get", "/v1/sessions/{key}/env", ""),
    ("post", "/v1/sessions/{key}/env", "{}"),
    ("post", "/v1/sessions/{key}/pipe", r#"{"file":null}"#),
    ("put", "/v1/sessions/{key}/files?dir=%22.%22", ""),
    ("post", "/v1/sessions/{key}/files/look", r#"{"path":"."}"#),
    ("post", "/v1/sessions/{key}/files/take", r#"{"path":"."}"#),
    ("get", "/v1/sessions/{key}/log", ""),
    ("get", "/v1/sessions/{key}/messages", ""),
    ("post", "/v1/sessions/{key}/messages", r#"{"text":"x"}"#),
    ("post", "/v1/sessions/{key}/ask?timeout_ms=1", r#"{"text":"x"}"#),
    ("post", "/v1/sessions/{key}/retry?timeout_ms=1", "{}"),
    ("post", "/v1/sessions/{key}/interrupt?timeout_ms=1", "null"),
    ("post", "/v1/sessions/{key}/escape", "null"),
    ("post", "/v1/sessions/{key}/keys", r#"{"keys":["x"]}"#),
    ("get", "/v1/sessions/{key}/question", ""),
    ("post", "/v1/sessions/{key}/approve?timeout_ms=1", "{}"),
    ("post", "/v1/sessions/{key}/deny?timeout_ms=1", "null"),
    ("get", "/v1/sessions/{key}/screen", ""),
    ("get", "/v1/sessions/{key}/screen/changes", ""),
    ("get", "/v1/sessions/{key}/repaint", ""),
    ("get", "/v1/sessions/{key}/explain", ""),
    ("get", "/v1/sessions/{key}/until?until=match=x&timeout_ms=1", ""),
    ("get", "/v1/sessions/{key}/until?until=event=x&timeout_ms=1", ""),
    ("get", "/v1/sessions/{key}/events", ""),
    ("get", "/v1/messages/{id}", ""),
    ("post", "/v1/messages/{id}/cancel", ""),
    ("post", "/v1/agents/claude/hooks", r#"{"action":"remove","command":"/x"}"#),
    ("post", "/v1/hook", r#"{"session":"{key}","token":"x","payload":{}}"#),
    ("post", "/v1/stop", r#"{"selector":{"names":["{key}"]}}"#),
    ("post", "/v1/kill", r#"{"selector":{"names":["{key}"]}}"#),
    ("post", "/v1/signal", r#"{"selector":{"names":["{key}"]},"signal":1}"#),
    ("post", "/v1/restart", r#"{"selector":{"names":["{key}"]}}"#),
    ("post", "/v1/restart", r#"{"selector":{"names":["inside"]},"repin":true}"#),
    ("post", "/v1/remove", r#"{"selector":{"names":["{key}"]},"force":true}"#),
    ("post", "/v1/pause", r#"{"selector":{"names":["{key}"]}}"#),
    ("post", "/v1/unpause", r#"{"selector":{"names":["{key}"]}}"#),
    ("post", "/v1/images/prune", "{}"),
    ("post", "/v1/images/remove", r#"{"name":"x"}"#),
    ("post", "/v1/gc", "{}"),
    ("post", "/v1/trust/look", r#"{"path":"/x"}"#),
    ("post", "/v1/trust/accept", r#"{"file":"/x","sha256":"x"}"#),
    ("post", "/v1/trust/revoke", r#"{"file":"/x"}"#),
];

/// What a session is kept from that would have the host touched on its behalf, also for itself, where it is confined.
const CONFINED: &[(&str, &str, &str)] = &[
    ("post", "/v1/sessions", r#"{"spec":{"argv":["fake:sleep"],"dir":"/"}}"#),
    ("post", "/v1/sessions/{key}/env", "{}"),
    ("post", "/v1/sessions/{key}/pipe", r#"{"file":null}"#),
    ("put", "/v1/sessions/{key}/files?dir=%22.%22", ""),
    ("post", "/v1/sessions/{key}/files/look", r#"{"path":"."}"#),
    ("post", "/v1/sessions/{key}/files/take", r#"{"path":"."}"#),
    ("post", "/v1/environments/prepare", r#"{"spec":{"argv":["fake:sleep"],"dir":"/"}}"#),
];

/// What everybody may look at.
const ANSWERED: &[(&str, &str, &str)] = &[
    ("get", "/v1/daemon", ""),
    ("get", "/v1/sessions", ""),
    ("get", "/v1/sessions/{key}", ""),
    ("get", "/v1/sessions/{key}/wait?timeout_ms=1", ""),
    ("get", "/v1/sessions/{key}/stats", ""),
    ("get", "/v1/sessions/{key}/ports", ""),
    ("get", "/v1/sessions/{key}/until?until=exit&timeout_ms=1", ""),
    ("get", "/v1/agents", ""),
    ("get", "/v1/images", ""),
    ("post", "/v1/images/prune", r#"{"dry_run":true}"#),
    ("get", "/v1/backends", ""),
    ("post", "/v1/gc", r#"{"dry_run":true}"#),
    ("get", "/v1/doctor", ""),
    ("get", "/v1/trust", ""),
];

/// Asks for a row of these, about this session and this message.
async fn ask(world: &World, (method, target, body): (&str, &str, &str), key: &str, id: &str) -> Reply {
    let target = target.replace("{key}", key).replace("{id}", id);
    let (method, body) = (method.to_ascii_uppercase(), body.replace("{key}", key));
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: wharf\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    raw(&world.home.socket(), head).await
}

#[tokio::test]
async fn no_route_does_for_a_session_what_is_anothers() {
    let world = world().await;
    world.start("other", &["fake:sleep"]).await;
    let message = SendRequest { text: "x".into(), manner: Manner::default() };
    let sent = world.client.send("other", &message, Await::Accepted, Duration::ZERO).await.unwrap();
    world.start("inside", &["fake:sleep"]).await;
    for row in ANSWERED {
        let reply = ask(&world, *row, "other", &sent.id).await;
        assert_ne!(reply.status, 403, "{row:?}: {}", reply.body);
    }
    for row in REFUSED {
        let reply = ask(&world, *row, "other", &sent.id).await;
        assert_eq!(reply.status, 403, "{row:?}: {}", reply.body);
    }
    assert_eq!(world.fake.live().len(), 2, "nothing was touched");
    world.end().await;
}

#[tokio::test]
async fn no_route_touches_the_host_for_a_session_that_is_kept_from_it() {
    let world = world().await;
    world.start("inside-confined", &["fake:sleep"]).await;
    for row in CONFINED {
        let reply = ask(&world, *row, "inside-confined", "").await;
        assert_eq!(reply.status, 403, "{row:?}: {}", reply.body);
    }
    world.end().await;
}

#[test]
fn every_route_is_asked_from_inside() {
    let path = |target: &&str| target.split('?').next().unwrap().replace("/claude/", "/{name}/");
    let rows: Vec<(&str, String)> = [REFUSED, CONFINED, ANSWERED]
        .concat()
        .iter()
        .map(|(method, target, _)| (*method, path(target)))
        .collect();
    let table = include_str!("../src/routes/mod.rs");
    let mut routes = 0;
    for line in table.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")) {
        let (path, methods) = line.split_once('"').unwrap();
        for method in
            ["get", "post", "put"].into_iter().filter(|method| methods.contains(&format!("{method}(")))
        {
            assert!(rows.contains(&(method, path.to_owned())), "{method} {path} is asked by no test");
            routes += 1;
        }
    }
    assert!(routes > 50, "{routes}");
}

#[tokio::test]
async fn a_session_does_not_type_where_its_own_question_is_open() {
    let world = world().await;
    let session = world.start("inside", &["fake:sleep"]).await;
    let typing = [
        ("post", "/v1/sessions/{key}/write", "1"),
        ("post", "/v1/sessions/{key}/keys", r#"{"keys":["1"]}"#),
        ("post", "/v1/sessions/{key}/escape", "null"),
        ("post", "/v1/sessions/{key}/interrupt?timeout_ms=1", "null"),
    ];
    let reply = ask(&world, typing[0], "inside", "").await;
    assert_eq!(reply.status, 200, "nothing is asked yet: {}", reply.body);
    let mut teller = common::connect(&world.home.events_socket());
    teller.write_all(b"{\"kind\":\"permission.asked\"}\n").await.unwrap();
    until("it asks", async || world.client.session("inside").await.unwrap().state == State::Asking).await;
    for row in typing {
        let reply = ask(&world, row, "inside", "").await;
        assert_eq!(reply.status, 403, "{row:?}: {}", reply.body);
    }
    assert_eq!(world.fake.input(&session.id), b"1", "nothing was typed at the question");
    world.end().await;
}

fn named(names: &[&str]) -> ManyRequest {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    ManyRequest { selector: Selector { names, ..Selector::default() }, signal: 15, ..ManyRequest::default() }
}

#[tokio::test]
async fn from_inside_only_that_session_is_touched() {
    let world = world().await;
    world.start("other", &["fake:sleep"]).await;
    world.start("inside", &["fake:sleep"]).await;
    let client = &inside(&world).await;
    let all = ManyRequest {
        selector: Selector { all: true, ..Selector::default() },
        signal: 15,
        force: true,
        ..ManyRequest::default()
    };
    for request in [named(&["other"]), named(&["inside", "other"]), all] {
        for answer in [
            client.stop(&request).await,
            client.kill(&request).await,
            client.signal(&request).await,
            client.restart(&request).await,
            client.remove(&request).await,
        ] {
            let failure = answer.unwrap_err();
            assert_eq!(failure.code, Code::Forbidden);
            assert!(failure.message.contains("other"), "{failure}");
            assert!(failure.hint.is_some());
        }
    }
    assert_eq!(client.rename("other", &name("x")).await.unwrap_err().code, Code::Forbidden);
    let request = SendRequest { text: "x".into(), manner: Manner::default() };
    let refused = [
        client.send("other", &request, Await::Accepted, Duration::ZERO).await.map(drop),
        client.ask_agent("other", &request, TEST_TIMEOUT).await.map(drop),
        client.interrupt("other", TEST_TIMEOUT).await.map(drop),
        client.escape("other").await.map(drop),
        client.keys("other", vec!["x".into()]).await,
        client.approve("other", None, TEST_TIMEOUT).await.map(drop),
        client.deny("other", TEST_TIMEOUT).await.map(drop),
    ];
    for answer in refused {
        assert_eq!(answer.unwrap_err().code, Code::Forbidden);
    }
    let refused = [
        client.messages("other").await.map(drop),
        client.explain("other").await.map(drop),
        client.events("other", 0, false).await.map(drop),
        client.log("other", Offset(0), false).await.map(drop),
        client.env("other").await.map(drop),
    ];
    for answer in refused {
        assert_eq!(answer.unwrap_err().code, Code::Forbidden);
    }
    // Its own question is nobody's to answer from inside.
    assert_eq!(client.approve("inside", None, TEST_TIMEOUT).await.unwrap_err().code, Code::Forbidden);
    assert_eq!(client.deny("inside", TEST_TIMEOUT).await.unwrap_err().code, Code::Forbidden);
    let settings =
        HookSettings { action: HookAction::Install, command: "/x/wharf".into(), variables: Vec::new() };
    assert_eq!(client.hook_settings("claude", &settings).await.unwrap_err().code, Code::Forbidden);
    assert_eq!(client.stop_daemon().await.unwrap_err().code, Code::Forbidden);
    assert_eq!(client.gc(&GcRequest::default()).await.unwrap_err().code, Code::Forbidden);
    assert_eq!(world.fake.live().len(), 2, "nothing was touched");

    // Itself it may end, and others it may look at.
    let seen = client.session("other").await.unwrap();
    assert_eq!((seen.state, seen.argv.len()), (State::Running, 1));
    client.explain("inside").await.unwrap();
    client.events("inside", 0, false).await.unwrap();
    client.rename("inside", &name("still-inside")).await.unwrap();
    let outcomes = client.kill(&named(&["still-inside"])).await.unwrap();
    assert_eq!(outcomes[0].failure, None);
    world.end().await;
}

#[tokio::test]
async fn a_session_that_may_control_others_does() {
    let world = world().await;
    world.start("other", &["fake:sleep"]).await;
    let mut wanted = request("inside", &["fake:sleep"]);
    wanted.spec.control_others = true;
    world.client.start(&wanted).await.unwrap();
    let client = inside(&world).await;
    assert_eq!(client.approve("inside", None, TEST_TIMEOUT).await.unwrap_err().code, Code::Forbidden);
    let outcomes = client.kill(&named(&["other"])).await.unwrap();
    assert_eq!(outcomes[0].failure, None);
    world.end().await;
}

#[tokio::test]
async fn a_session_gives_no_more_than_it_has_and_controls_what_it_started() {
    let world = world().await;
    world.start("inside", &["fake:sleep"]).await;
    let client = inside(&world).await;
    let mut wider = request("wider", &["fake:sleep"]);
    wider.spec.control_others = true;
    assert_eq!(client.start(&wider).await.unwrap_err().code, Code::Forbidden);
    let mut adopting = request("adopting", &["fake:sleep"]);
    adopting.spec.adopt = Some("%0".into());
    assert_eq!(client.start(&adopting).await.unwrap_err().code, Code::Forbidden);
    let mut child = request("child", &["fake:sleep"]);
    // Who started it is not for the asker to say.
    child.spec.starter = Some(world.start("other", &["fake:sleep"]).await.id);
    client.start(&child).await.unwrap();
    client.events("child", 0, false).await.unwrap();
    assert_eq!(client.kill(&named(&["child"])).await.unwrap()[0].failure, None);
    assert_eq!(client.kill(&named(&["other"])).await.unwrap_err().code, Code::Forbidden);
    world.end().await;
}

#[tokio::test]
async fn a_process_of_a_session_tells_events_for_it() {
    let world = world().await;
    world.start("inside", &["fake:sleep"]).await;
    let mut teller = tokio::io::BufReader::new(common::connect(&world.home.events_socket()));
    let mut answer = String::new();
    teller.get_mut().write_all(b"{\"kind\":\"my.event\",\"data\":5,\"ack\":true}\n").await.unwrap();
    tokio::time::timeout(TEST_TIMEOUT, teller.read_line(&mut answer)).await.unwrap().unwrap();
    assert!(answer.contains("\"event\":"), "{answer}");
    let mut events = world.client.events("inside", 0, false).await.unwrap();
    let mut told = None;
    while let Some(event) = events.next().await.unwrap() {
        told = Some((event.kind, event.source, event.data));
    }
    assert_eq!(told, Some(("my.event".into(), "sidecar".into(), serde_json::json!(5))));
    world.end().await;
}

#[tokio::test]
async fn a_confined_session_sends_the_daemon_to_no_engine() {
    let shelf = Shelf::default();
    let world = world_with(shelf.clone()).await;
    let named = |_: &str| Some("tcp://inside.example".into());
    let engine = EngineVariables::places(std::path::Path::new("/"), named);
    let look = async |client: &Client| {
        client.images(None, Some(&engine)).await.unwrap();
        let prune = PruneRequest { dry_run: true, engine: Some(engine.clone()), ..PruneRequest::default() };
        client.prune_images(&prune).await.unwrap();
        std::mem::take(&mut *shelf.0.lock().unwrap())
    };
    let meant = Some(engine.clone());
    assert_eq!(look(&world.client).await, [meant.clone(), meant]);
    world.start("inside-confined", &["fake:sleep"]).await;
    assert_eq!(look(&inside(&world).await).await, [None, None]);
    world.end().await;
}

#[tokio::test]
async fn of_anothers_session_nobody_inside_is_shown_what_was_told_there() {
    let world = world().await;
    let mut wanted = request("other", &["fake:sleep", "the-prompt"]);
    wanted.spec.labels.insert("what".into(), "the-label".into());
    let session = world.client.start(&wanted).await.unwrap().session;
    let ticket = std::fs::read(world.home.session(&session.id).join("ticket.json")).unwrap();
    let ticket: Ticket = serde_json::from_slice(&ticket).unwrap();
    let told = serde_json::json!({ "session": ticket.id, "token": ticket.token, "kind": "permission.asked" });
    common::connect(&world.home.events_socket()).write_all(format!("{told}\n").as_bytes()).await.unwrap();
    until("it asks", async || world.client.session("other").await.unwrap().state == State::Asking).await;
    let looks = [
        ("get", "/v1/sessions", ""),
        ("get", "/v1/sessions/{key}", ""),
        ("get", "/v1/sessions/{key}/until?until=asking&timeout_ms=1", ""),
    ];
    let words = ["the-prompt", "the-label", "permission.asked"];
    let said = async || -> Vec<String> {
        let mut said = Vec::new();
        for row in looks {
            let reply = ask(&world, row, "other", "").await;
            assert_eq!(reply.status, 200, "{row:?}: {}", reply.body);
            said.push(reply.body);
        }
        said
    };
    let outside = said().await.concat();
    assert!(words.iter().all(|word| outside.contains(word)), "{outside}");
    world.start("inside", &["fake:sleep"]).await;
    for body in said().await {
        assert!(!words.iter().any(|word| body.contains(word)), "{body}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_name_that_moves_on_after_the_caller_was_asked_leads_to_no_other_session() {
    let world = world().await;
    let inside = world.start("inside", &["fake:sleep"]).await;
    let other = world.start("other", &["fake:sleep"]).await;
    let body = r#"{"keys":["x"]}"#;
    let head = format!(
        "POST /v1/sessions/inside/keys HTTP/1.1\r\nhost: wharf\r\nconnection: close\r\nexpect: 100-continue\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = common::connect(&world.home.socket());
    stream.write_all(head.as_bytes()).await.unwrap();
    // The route wants the body: by then it was asked whether the caller may.
    let mut go_on = [0; 25];
    let read =
        tokio::time::timeout(TEST_TIMEOUT, tokio::io::AsyncReadExt::read_exact(&mut stream, &mut go_on));
    read.await.expect("it goes on in time").unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    world.client.rename("inside", &name("moved")).await.unwrap();
    world.client.rename("other", &name("inside")).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let reply = common::reply(stream).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!((world.fake.input(&inside.id), world.fake.input(&other.id)), (b"x".to_vec(), Vec::new()));
    world.end().await;
}

/// Asks for the end of the session "other", says whether it has, and then goes.
const KILLER: &str = r#"
    use IO::Socket::UNIX;
    my $socket = IO::Socket::UNIX->new($ENV{SOCKET}) or die;
    exit if $ENV{LEAVE} && fork;
    my $body = '{"selector":{"names":["other"]}}';
    print $socket "POST /v1/kill HTTP/1.1\r\nhost: wharf\r\nconnection: close\r\ncontent-type: application/json\r\n";
    print $socket "content-length: ", length $body, "\r\n\r\n$body";
    $socket->flush;
    print <$socket>;
"#;

#[tokio::test]
async fn whoever_is_gone_before_it_is_looked_at_may_only_look() {
    let world = world().await;
    world.start("other", &["fake:sleep"]).await;
    let mut killer = std::process::Command::new("perl");
    killer.args(["-e", KILLER]).env("SOCKET", world.home.socket()).env("LEAVE", "1");
    let mut child = killer.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    // The daemon is on this thread, and looks at nobody until the one who connected has ended. Another goes on in its name.
    child.wait().unwrap();
    let said = tokio::task::spawn_blocking(move || std::io::read_to_string(output).unwrap()).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 403") && said.contains("which process asks"), "{said}");
    assert_eq!(world.fake.live().len(), 1, "nothing was touched");
    world.end().await;
}

#[tokio::test]
async fn what_a_process_says_of_itself_gives_it_no_rights() {
    let world = world().await;
    world.start("other", &["fake:sleep"]).await;
    let mut wanted = request("allowed", &["fake:sleep"]);
    wanted.spec.control_others = true;
    let allowed = world.client.start(&wanted).await.unwrap().session;
    let mut killer = tokio::process::Command::new("perl");
    killer.args(["-e", KILLER]).env("SOCKET", world.home.socket());
    killer.env("WHARF_SESSION_ID", allowed.id.as_str());
    let output = killer.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("HTTP/1.1 403"), "{output:?}");
    assert_eq!(world.fake.live().len(), 2, "nothing was touched");
    world.end().await;
}
