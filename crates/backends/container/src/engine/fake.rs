//! Serves an engine to tests: a socket whose answers a test chooses by the path that is asked for.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use wharf_backend::BackendTasks;
use wharf_model::Failure;

use crate::engine::Engine;
use crate::engine::endpoint::{Endpoint, Flavour};

/// What every engine says of itself.
const VERSION: &str = r#"{"ApiVersion":"1.44","Version":"1","Os":"linux","Arch":"amd64"}"#;

/// An answer of the engine.
pub(crate) enum Answer {
    /// What an engine says of itself.
    Usual,
    /// This, with a status.
    Whole(u16, String),
    /// One piece after the other, for as long as somebody reads: the piece of each number.
    Endless(fn(u64) -> String),
    /// Pieces, and then nothing more.
    Stalls(String),
}

/// An engine that runs until it is dropped.
pub(crate) struct FakeEngine {
    pub(crate) endpoint: Endpoint,
    served: tokio::task::JoinHandle<()>,
}

impl Drop for FakeEngine {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl FakeEngine {
    /// Answers at a socket in a directory.
    pub(crate) fn serve(dir: &Path, answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let path = dir.join("engine.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let served = tokio::spawn(async move {
            let (mut clients, answer) = (JoinSet::new(), Arc::new(answer));
            while let Ok((stream, _)) = listener.accept().await {
                clients.spawn(converse(stream, Arc::clone(&answer)));
            }
        });
        Self { endpoint: Endpoint::named(format!("unix://{}", path.display()), "a test"), served }
    }

    /// Answers at a port of the loopback, which passes for another host.
    pub(crate) async fn serve_remote(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut clients, answer) = (JoinSet::new(), Arc::new(answer));
            while let Ok((stream, _)) = listener.accept().await {
                clients.spawn(converse(stream, Arc::clone(&answer)));
            }
        });
        Self { endpoint: Endpoint::named(address, "a test"), served }
    }

    pub(crate) async fn reach(&self) -> Result<Engine, Failure> {
        self.reach_with(&BackendTasks::default()).await
    }

    /// The same, where somebody owns the connections.
    pub(crate) async fn reach_with(&self, tasks: &BackendTasks) -> Result<Engine, Failure> {
        Engine::reach(&self.endpoint, Flavour::Docker, Path::new("ssh"), tasks).await
    }
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Arc<impl Fn(&str) -> Answer>,
) -> io::Result<()> {
    let mut asked = Vec::new();
    while !asked.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut asked).await? == 0 {
            return Ok(());
        }
    }
    let asked = String::from_utf8_lossy(&asked).into_owned();
    let path = asked.split_whitespace().nth(1).unwrap_or_default();
    let answer = answer(path);
    let status = if let Answer::Whole(status, _) = &answer { *status } else { 200 };
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    match answer {
        Answer::Usual => stream.write_all(format!("{}0\r\n\r\n", chunk(VERSION)).as_bytes()).await,
        Answer::Whole(_, text) => stream.write_all(format!("{}0\r\n\r\n", chunk(&text)).as_bytes()).await,
        Answer::Endless(piece) => {
            for number in 0.. {
                stream.write_all(chunk(&piece(number)).as_bytes()).await?;
            }
            Ok(())
        }
        Answer::Stalls(text) => {
            // An empty piece would be the end.
            if !text.is_empty() {
                stream.write_all(chunk(&text).as_bytes()).await?;
            }
            // Until the client hangs up.
            stream.read_to_end(&mut Vec::new()).await.map(drop)
        }
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
