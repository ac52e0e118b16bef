//! Which backend a session gets, and why.

use std::sync::Arc;

use async_trait::async_trait;
use wharf_backend::fake::FakeBackend;
use wharf_backend::{Adoption, Backend, Connection, Launch, Probe};
use wharf_engine::{Config, Engine, Failure};
use wharf_model::{Capabilities, Code, Container, Ticket};

use crate::place::{Place, spec};

/// A fake under another name that can be used, or not.
struct Named {
    name: &'static str,
    available: bool,
    isolation: bool,
    fake: FakeBackend,
}

#[async_trait]
impl Backend for Named {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { isolation: self.isolation, ..self.fake.capabilities() }
    }

    async fn probe(&self) -> Probe {
        let detail = if self.available { "fine" } else { "it is switched off" };
        Probe { available: self.available, version: None, detail: detail.to_owned(), hint: None }
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>), Failure> {
        let (mut ticket, connection) = self.fake.start(launch).await?;
        self.name.clone_into(&mut ticket.backend);
        Ok((ticket, connection))
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption, Failure> {
        self.fake.adopt(ticket).await
    }

    async fn list(&self) -> Result<Vec<Ticket>, Failure> {
        self.fake.list().await
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32, Failure> {
        self.fake.sweep(ticket).await
    }

    async fn close(&self) {
        self.fake.close().await;
    }
}

async fn engine(place: &Place, order: &[&str]) -> Engine {
    let named = |name, available, isolation| {
        Arc::new(Named { name, available, isolation, fake: FakeBackend::new() }) as Arc<dyn Backend>
    };
    let backends = vec![
        named("first", true, false),
        named("off", false, false),
        named("box", false, true),
        named("last", true, false),
    ];
    let order: Vec<String> = order.iter().map(|name| (*name).to_owned()).collect();
    let auto = Arc::new(move || Ok(order.clone()));
    Engine::open(Config::new(place.home(), backends).with_auto(auto)).await.unwrap()
}

#[tokio::test]
async fn auto_is_the_first_of_its_order_that_can_be_used_and_says_why() {
    let place = Place::new();
    let engine = engine(&place, &["off", "box", "last", "first"]).await;
    let mut spec = spec(&["fake:sleep"]);
    spec.backend = Some("auto".to_owned());
    let session = engine.start(spec.clone()).await.unwrap();
    assert_eq!(session.backend, "last");
    let why = session.chosen.clone().unwrap();
    assert!(why.starts_with("last is the first of off, last, first"), "{why}");
    assert!(why.contains("off: it is switched off"), "{why}");
    spec.backend = None;
    let session = engine.start(spec).await.unwrap();
    assert_eq!((session.backend.as_str(), session.chosen.as_deref()), ("first", None));
    engine.close().await;
}

#[tokio::test]
async fn a_flake_that_was_left_open_is_left_out_where_nix_cannot_be_had() {
    let place = Place::new();
    let engine = engine(&place, &["last"]).await;
    let mut asked = spec(&["fake:sleep"]);
    asked.backend = Some("auto".to_owned());
    asked.nix = Some(Box::new(wharf_model::Nix { auto: true, ..wharf_model::Nix::parse("/flake") }));
    let session = engine.start(asked.clone()).await.unwrap();
    let why = session.chosen.clone().unwrap();
    assert!(why.contains("last is the first of") && why.contains("the flake /flake is left out"), "{why}");
    // What is asked for by name is had, or refused.
    asked.nix = Some(Box::new(wharf_model::Nix::parse("/flake")));
    assert_eq!(engine.start(asked).await.unwrap_err().code, Code::Unsupported);
    engine.close().await;
}

#[tokio::test]
async fn auto_without_an_order_is_the_default() {
    let place = Place::new();
    let engine = engine(&place, &[]).await;
    let mut spec = spec(&["fake:sleep"]);
    spec.backend = Some("auto".to_owned());
    assert_eq!(engine.start(spec).await.unwrap().backend, "first");
    engine.close().await;
}

#[tokio::test]
async fn what_cannot_be_had_is_an_error_and_nothing_else_is_taken() {
    let place = Place::new();
    let engine = engine(&place, &["off", "box"]).await;
    let mut asked = spec(&["fake:sleep"]);
    asked.backend = Some("auto".to_owned());
    let failure = engine.start(asked.clone()).await.unwrap_err();
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("off: it is switched off"), "{}", failure.message);
    // A container was asked for: the host will not do.
    asked.container = Some(Box::new(Container::of("image")));
    let failure = engine.start(asked).await.unwrap_err();
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("no container can be had"), "{}", failure.message);
    assert!(engine.list(&wharf_engine::Filter::default()).is_empty());
    engine.close().await;
}

#[tokio::test]
async fn an_order_with_a_stranger_says_so() {
    let place = Place::new();
    let engine = engine(&place, &["nowhere"]).await;
    let mut spec = spec(&["fake:sleep"]);
    spec.backend = Some("auto".to_owned());
    let failure = engine.start(spec).await.unwrap_err();
    assert_eq!(failure.code, Code::Invalid);
    assert!(
        failure.message.contains("nowhere")
            && failure.hint.is_some_and(|hint| hint.contains("backends.auto"))
    );
    engine.close().await;
}
