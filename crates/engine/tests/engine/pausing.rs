//! Tests that late news of a pause changes nothing.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::broadcast;
use wharf_backend::fake::FakeBackend;
use wharf_backend::{Adoption, Backend, Connection, Freezer, Frozen, Launch, Probe, Result};
use wharf_engine::{Config, Engine};
use wharf_model::{Capabilities, Home, SessionId, Ticket};

use crate::place::{named, until};

/// A place where sessions can be made to stand still behind the engine's back, and that tells of it when it likes.
struct Icy {
    fake: FakeBackend,
    still: Mutex<HashSet<SessionId>>,
    news: broadcast::Sender<Frozen>,
}

impl Icy {
    fn new() -> Arc<Self> {
        Arc::new(Self { fake: FakeBackend::new(), still: Mutex::default(), news: broadcast::Sender::new(16) })
    }

    fn make(&self, session: &SessionId, still: bool) {
        let mut all = self.still.lock().unwrap();
        if still {
            all.insert(session.clone())
        } else {
            all.remove(session)
        };
    }

    fn tell(&self, session: &SessionId, still: bool) {
        self.news.send(Frozen { session: session.clone(), still }).unwrap();
    }
}

#[async_trait]
impl Backend for Icy {
    fn name(&self) -> &'static str {
        self.fake.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: true, ..self.fake.capabilities() }
    }

    async fn probe(&self) -> Probe {
        self.fake.probe().await
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        self.fake.start(launch).await
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        self.fake.adopt(ticket).await
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        self.fake.list().await
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        self.fake.sweep(ticket).await
    }

    fn freezer(&self) -> Option<&dyn Freezer> {
        Some(self)
    }

    async fn close(&self) {
        self.fake.close().await;
    }
}

#[async_trait]
impl Freezer for Icy {
    async fn freeze(&self, ticket: &Ticket, still: bool) -> Result<()> {
        self.make(&ticket.id, still);
        Ok(())
    }

    async fn is_frozen(&self, ticket: &Ticket) -> Result<bool> {
        Ok(self.still.lock().unwrap().contains(&ticket.id))
    }

    fn news(&self) -> Option<broadcast::Receiver<Frozen>> {
        Some(self.news.subscribe())
    }
}

#[tokio::test]
async fn news_that_come_late_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let icy = Icy::new();
    let config = Config::new(Home::below(dir.path()), vec![Arc::clone(&icy) as Arc<dyn Backend>]);
    let engine = Engine::open(config).await.unwrap();
    let late = engine.start(named("late", &["fake:echo"])).await.unwrap();
    let seen = engine.start(named("seen", &["fake:echo"])).await.unwrap();

    // As an engine tells of a run that has ended meanwhile; then of one that does stand still.
    icy.tell(&late.id, true);
    icy.make(&seen.id, true);
    icy.tell(&seen.id, true);
    until(&engine, "seen", |session| session.paused).await;
    assert!(!engine.find("late").await.unwrap().paused, "news are in order, so these were heard");

    icy.tell(&seen.id, false);
    icy.make(&late.id, true);
    icy.tell(&late.id, true);
    until(&engine, "late", |session| session.paused).await;
    assert!(engine.find("seen").await.unwrap().paused);
    engine.session("seen").await.unwrap().unpause().await.unwrap();
    assert!(!engine.find("seen").await.unwrap().paused);
    engine.close().await;
}
