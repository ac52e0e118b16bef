//! Opens an engine with fake agents for a delivery test, and reads what they received.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use wharf_engine::{Await, Config, Engine};
use wharf_model::{Home, Manner, Progress, Receipt, Session, Spec, State};

use crate::ground::Ground;

/// Longer than anything here takes on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// An instance of its own, with the fake agents' profile in its configuration.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    ground: Ground,
    pub(crate) engine: Engine,
}

impl Place {
    pub(crate) async fn new(ground: Ground) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let profiles = Home::below(dir.path()).config().join("profiles");
        std::fs::create_dir_all(&profiles).unwrap();
        std::fs::write(profiles.join("fake.toml"), include_str!("../../src/fake/profile.toml")).unwrap();
        let engine = open(&Home::below(dir.path()), &ground).await;
        Self { dir, ground, engine }
    }

    /// The daemon dies and another takes its place.
    pub(crate) async fn again(&mut self) {
        self.engine.close().await;
        self.engine = open(&Home::below(self.dir.path()), &self.ground).await;
    }

    /// Whether sessions without a terminal can be had here.
    pub(crate) fn has_pipes(&self) -> bool {
        !matches!(self.ground, Ground::Tmux)
    }

    pub(crate) fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    /// Starts a fake agent.
    pub(crate) async fn fake(&self, name: &str, words: &[&str]) -> Arc<Session> {
        let log = self.log(name);
        let mut argv = vec![env!("CARGO_BIN_EXE_wharf-fake-agent")];
        argv.extend(words);
        argv.extend(["--log", log.to_str().unwrap()]);
        self.start(name, &argv).await
    }

    /// Starts a fake agent under a name that no profile knows.
    pub(crate) async fn stranger(&self, name: &str, words: &[&str]) -> Arc<Session> {
        let (log, program) = (self.log(name), self.dir.path().join("stranger"));
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wharf-fake-agent"), &program);
        let mut argv = vec![program.to_str().unwrap()];
        argv.extend(words);
        argv.extend(["--log", log.to_str().unwrap()]);
        self.start(name, &argv).await
    }

    pub(crate) async fn start(&self, name: &str, argv: &[&str]) -> Arc<Session> {
        let mut spec = self.spec(name, argv);
        spec.env.caller = std::env::vars().map(|(name, value)| (name.into(), value.into())).collect();
        self.engine.start(spec).await.unwrap()
    }

    /// What is to be started, shaped for the place.
    pub(crate) fn spec(&self, name: &str, argv: &[&str]) -> Spec {
        let mut spec = Spec::new(argv.iter().copied(), self.dir.path().to_str().unwrap());
        spec.name = Some(name.parse().unwrap());
        self.ground.shape(&mut spec, self.dir.path());
        spec
    }

    pub(crate) async fn send(&self, name: &str, text: &str) -> Receipt {
        self.send_so(name, text, Manner::default()).await
    }

    pub(crate) async fn send_so(&self, name: &str, text: &str, manner: Manner) -> Receipt {
        let receipt = self.engine.session(name).await.unwrap().send(text.to_owned(), manner).await.unwrap();
        self.receipt(&receipt.id).await
    }

    /// What becomes of a message: its receipt once it is confirmed or over.
    pub(crate) async fn receipt(&self, id: &str) -> Receipt {
        let session = self.engine.session_of_message(id).await.unwrap();
        session.await_receipt(id, Await::Confirmed, TEST_TIMEOUT).await.unwrap()
    }

    /// What the agent really got, in order.
    pub(crate) fn got(&self, name: &str) -> Vec<String> {
        let lines = self.record(name);
        lines
            .iter()
            .filter_map(|line| {
                line.get("text").filter(|_| line.get("n").is_some())?.as_str().map(str::to_owned)
            })
            .collect()
    }

    /// What else happened to it.
    pub(crate) fn happened(&self, name: &str) -> Vec<String> {
        self.record(name).iter().filter_map(|line| line.get("event")?.as_str().map(str::to_owned)).collect()
    }

    fn record(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for something in the agent's own record.
    pub(crate) async fn until_happened(&self, name: &str, event: &str) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !self.happened(name).iter().any(|happened| happened == event) {
            assert!(Instant::now() < deadline, "{event} did not happen: {:?}", self.record(name));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn state(&self, name: &str, state: State) {
        let until = wharf_model::Until::State(state);
        if let Err(failure) = self.engine.session(name).await.unwrap().until(until, Some(TEST_TIMEOUT)).await
        {
            let explained = self.engine.session(name).await.unwrap().explain().await;
            let screen = self
                .engine
                .session(name)
                .await
                .unwrap()
                .capture(wharf_engine::What::Screen, wharf_engine::Format::Plain)
                .await;
            panic!("{failure}\n{explained:#?}\n{}", screen.unwrap_or_default());
        }
    }

    pub(crate) async fn end(self) {
        for session in self.engine.list(&wharf_engine::Filter::default()) {
            let _ = self.engine.session(session.id.as_str()).await.unwrap().kill("the test").await;
        }
        self.engine.close().await;
    }
}

pub(crate) fn confirmed(receipt: &Receipt) {
    assert_eq!(receipt.status, Progress::Confirmed, "{receipt:#?}");
}

async fn open(home: &Home, ground: &Ground) -> Engine {
    Engine::open(Config::new(home.clone(), vec![ground.backend(home)])).await.unwrap()
}
