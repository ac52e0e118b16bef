//! What the tests share: a daemon with a fake backend on a socket of its own, and a raw way to speak to it.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use wharf_api::{Client, Problem, StartRequest};
use wharf_backend::Backend;
use wharf_backend::fake::FakeBackend;
use wharf_model::{Home, Name, Session, Spec};
use wharf_server::{Daemon, Stopper};

/// No test waits longer for anything.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(40);

/// A running daemon.
pub struct World {
    pub root: TempDir,
    pub home: Home,
    pub fake: FakeBackend,
    pub client: Client,
    pub stopper: Stopper,
    pub task: JoinHandle<()>,
}

impl World {
    pub async fn new() -> Self {
        let fake = FakeBackend::new();
        Self::with(fake.clone(), Arc::new(fake)).await
    }

    pub async fn with(fake: FakeBackend, backend: Arc<dyn Backend>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let daemon = Daemon::open(&home, vec![backend]).await.unwrap();
        let stopper = daemon.stopper();
        let task = tokio::spawn(daemon.run());
        let client = Client::connect(home.socket()).await.unwrap();
        Self { root, home, fake, client, stopper, task }
    }

    /// Starts a fake session.
    pub async fn start(&self, name: &str, argv: &[&str]) -> Session {
        self.client.start(&request(name, argv)).await.unwrap().session
    }

    /// Ends the daemon; everything must be let go within its patience.
    pub async fn end(self) {
        self.stopper.stop();
        tokio::time::timeout(TEST_TIMEOUT, self.task).await.expect("the daemon ends").unwrap();
    }
}

pub fn request(name: &str, argv: &[&str]) -> StartRequest {
    let mut spec = Spec::new(argv.iter().copied(), "/");
    spec.name = Some(self::name(name));
    StartRequest { spec, ensure: false }
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Sends raw bytes and reads the answer to its end.
pub async fn raw(socket: &Path, text: impl AsRef<[u8]>) -> Reply {
    let mut stream = connect(socket);
    stream.write_all(text.as_ref()).await.unwrap();
    reply(stream).await
}

pub fn connect(socket: &Path) -> UnixStream {
    UnixStream::from_std(wharf_api::linux::connect(socket).unwrap()).unwrap()
}

/// Reads an answer; the connection must be closed after it.
pub async fn reply(mut stream: UnixStream) -> Reply {
    let mut bytes = Vec::new();
    let read =
        tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("an answer in time");
    // A server that refuses a body unread resets the connection after its answer.
    assert!(read.is_ok() || !bytes.is_empty(), "{read:?}");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}

/// An answer in parts.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn problem(&self) -> Problem {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Waits for a condition.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(TEST_TIMEOUT, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
