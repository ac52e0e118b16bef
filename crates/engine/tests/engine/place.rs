//! A place to run an engine in, and how to wait for something in it.

use std::sync::Arc;
use std::time::Duration;

use wharf_backend::Backend;
use wharf_backend::fake::FakeBackend;
use wharf_backend::faults::{FaultHandle, FaultyBackend};
use wharf_engine::{Change, Config, Engine};
use wharf_model::{Environment, Home, Session, Spec, State};

/// How long anything may take here.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// An instance in a directory of its own, on a fake backend with faults in front.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) fake: FakeBackend,
    pub(crate) faults: FaultHandle,
    pub(crate) backend: Arc<dyn Backend>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let fake = FakeBackend::new();
        let (backend, faults) = FaultyBackend::new(Arc::new(fake.clone()));
        Self { dir: tempfile::tempdir().unwrap(), fake, faults, backend }
    }

    pub(crate) fn home(&self) -> Home {
        Home::below(self.dir.path())
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(self.home(), vec![Arc::clone(&self.backend)]);
        config.timeouts.adopt = Duration::from_millis(300);
        config.timeouts.settle = Duration::from_millis(600);
        config.timeouts.retry = (Duration::from_millis(20), Duration::from_millis(100));
        config.timeouts.port_release = Duration::from_millis(200);
        config
    }

    pub(crate) async fn open(&self) -> Engine {
        Engine::open(self.config()).await.unwrap()
    }
}

/// A spec that runs a program of the fake.
pub(crate) fn spec(argv: &[&str]) -> Spec {
    let mut spec = Spec::new(argv.iter().copied(), "/");
    spec.env = Environment::exactly([]);
    spec
}

/// The same, with a name.
pub(crate) fn named(name: &str, argv: &[&str]) -> Spec {
    let mut spec = spec(argv);
    spec.name = Some(name.parse().unwrap());
    spec
}

/// Waits until a session is as it should be.
pub(crate) async fn until(engine: &Engine, key: &str, what: impl Fn(&Session) -> bool) -> Arc<Session> {
    let mut changes = engine.changes();
    let wait = async {
        loop {
            if let Ok(session) = engine.find(key).await
                && what(&session)
            {
                return session;
            }
            let next: Option<Change> = changes.next().await;
            assert!(next.is_some(), "the engine went away");
        }
    };
    let found = tokio::time::timeout(DEADLINE, wait).await.ok();
    let now = engine.find(key).await;
    found.unwrap_or_else(|| panic!("{key} never was so: {now:?}"))
}

/// Waits until a session has a state.
pub(crate) async fn state(engine: &Engine, key: &str, state: State) -> Arc<Session> {
    until(engine, key, |session| session.state == state).await
}

/// All the output there is, as text.
pub(crate) async fn output(engine: &Engine, key: &str) -> String {
    let mut output = engine.session(key).await.unwrap().output(wharf_model::Offset(0), false).await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = output.next().await.unwrap() {
        if let wharf_engine::OutputChunk::Data { bytes, .. } = chunk {
            all.extend(bytes);
        }
    }
    String::from_utf8(all).unwrap()
}
