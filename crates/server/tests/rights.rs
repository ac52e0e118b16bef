//! What a command from inside a session may do.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{LONG, World, name, request};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use wharf_api::{Await, GcRequest, HookAction, HookSettings, ManyRequest, Selector, SendRequest};
use wharf_backend::fake::FakeBackend;
use wharf_backend::{Adoption, Backend, Connection, Launch, Probe, Result};
use wharf_model::{Capabilities, Code, Manner, ProcessIdentity, Ticket};

/// A fake in which this test process runs inside the sessions that have `inside` in their name.
struct Inside(FakeBackend);

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
            };
            ticket.command = Some(identity);
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
}

async fn world() -> World {
    let fake = FakeBackend::new();
    World::with(fake.clone(), Arc::new(Inside(fake))).await
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
    let client = &world.client;
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
        client.ask_agent("other", &request, LONG).await.map(drop),
        client.interrupt("other", LONG).await.map(drop),
        client.escape("other").await.map(drop),
        client.keys("other", vec!["x".into()]).await,
        client.approve("other", None, LONG).await.map(drop),
        client.deny("other", LONG).await.map(drop),
    ];
    for answer in refused {
        assert_eq!(answer.unwrap_err().code, Code::Forbidden);
    }
    assert_eq!(client.messages("other").await.unwrap(), []);
    let settings =
        HookSettings { action: HookAction::Install, command: "/x/wharf".into(), variables: Vec::new() };
    assert_eq!(client.hook_settings("claude", &settings).await.unwrap_err().code, Code::Forbidden);
    assert_eq!(client.stop_daemon().await.unwrap_err().code, Code::Forbidden);
    assert_eq!(client.gc(&GcRequest::default()).await.unwrap_err().code, Code::Forbidden);
    assert_eq!(world.fake.live().len(), 2, "nothing was touched");

    // Itself it may end, and others it may look at.
    client.session("other").await.unwrap();
    client.explain("other").await.unwrap();
    client.events("other", 0, false).await.unwrap();
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
    let outcomes = world.client.kill(&named(&["other"])).await.unwrap();
    assert_eq!(outcomes[0].failure, None);
    world.end().await;
}

#[tokio::test]
async fn a_process_of_a_session_tells_events_for_it() {
    let world = world().await;
    world.start("inside", &["fake:sleep"]).await;
    let mut teller = tokio::io::BufReader::new(common::connect(&world.home.events_socket()));
    let mut answer = String::new();
    teller.get_mut().write_all(b"{\"kind\":\"my.event\",\"data\":5,\"ack\":true}\n").await.unwrap();
    tokio::time::timeout(LONG, teller.read_line(&mut answer)).await.unwrap().unwrap();
    assert!(answer.contains("\"event\":"), "{answer}");
    let mut events = world.client.events("inside", 0, false).await.unwrap();
    let mut told = None;
    while let Some(event) = events.next().await.unwrap() {
        told = Some((event.kind, event.source, event.data));
    }
    assert_eq!(told, Some(("my.event".into(), "sidecar".into(), serde_json::json!(5))));
    world.end().await;
}
