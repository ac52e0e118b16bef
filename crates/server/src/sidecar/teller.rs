use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use wharf_api::linux::Peer;
use wharf_engine::{Engine, Origin};
use wharf_model::{Code, Failure, SessionId};

use super::envelope::Envelope;
use super::lines::{Line, Lines};
use crate::{credentials, rights};

/// The longest line.
const LONGEST: usize = 16 << 20;
/// A line beyond this is read on another thread, so that others need not wait for it.
const LARGE: usize = 256 << 10;
/// How long an answer may take to be taken.
const TAKEN: std::time::Duration = std::time::Duration::from_secs(5);

/// The kind of a line that has what an agent's own hook says, for its profile to translate.
const HOOK: &str = "hook";

/// What such a line has.
#[derive(serde::Deserialize)]
struct Hook {
    agent: Option<String>,
    payload: Value,
}

/// One who tells events, from his first line to his last.
pub(super) struct Teller {
    engine: Engine,
    peer: Peer,
    lines: Lines<OwnedReadHalf>,
    answers: OwnedWriteHalf,
    session: Option<SessionId>,
    /// Whether it may not be another one any more.
    settled: bool,
    /// The sender's last number.
    last: Option<u64>,
    /// Lines that were not taken.
    skipped: u64,
}

impl Teller {
    pub(super) fn new(engine: Engine, peer: Peer, stream: UnixStream, large: Arc<Semaphore>) -> Self {
        let (reader, answers) = stream.into_split();
        let lines = Lines::new(reader, large, LONGEST);
        Self { engine, peer, lines, answers, session: None, settled: false, last: None, skipped: 0 }
    }

    /// Takes lines until there are no more.
    pub(super) async fn run(mut self) {
        let ended = self.take_all().await;
        if let Err(error) = ended {
            tracing::debug!(pid = self.peer.pid, "a teller of events hung up: {error}");
        }
        if self.skipped > 0 {
            let who =
                self.session.as_ref().map_or_else(|| format!("pid {}", self.peer.pid), ToString::to_string);
            tracing::warn!("{} lines of {who} were no events, or too long", self.skipped);
        }
    }

    async fn take_all(&mut self) -> io::Result<()> {
        while let Some(line) = self.lines.next().await? {
            match line {
                Line::TooLong => {
                    self.skipped += 1;
                    self.told("cut", json!({ "longest": LONGEST })).await;
                }
                Line::Whole(line, _room) if !line.trim_ascii().is_empty() => self.take(line).await?,
                Line::Whole(..) => {}
            }
            // Others have their turn after every line.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn take(&mut self, line: Vec<u8>) -> io::Result<()> {
        let read = if line.len() > LARGE {
            tokio::task::spawn_blocking(move || Envelope::read(&line)).await.map_err(io::Error::other)?
        } else {
            Envelope::read(&line)
        };
        let Ok(envelope) = read else {
            self.skipped += 1;
            return Ok(());
        };
        let (seq, ack) = (envelope.seq, envelope.ack);
        let done = self.tell(envelope).await;
        if done.is_err() {
            self.skipped += 1;
        }
        if ack {
            let answer = match &done {
                Ok(event) => json!({ "v": 1, "ack": seq, "event": event }),
                Err(failure) => json!({ "v": 1, "ack": seq, "error": failure }),
            };
            let answer = format!("{answer}\n");
            tokio::time::timeout(TAKEN, self.answers.write_all(answer.as_bytes())).await??;
        }
        Ok(())
    }

    /// Stores what was told. Its number; none where it only says who speaks, or came before.
    async fn tell(&mut self, envelope: Envelope) -> Result<Option<u64>, Failure> {
        let kind = envelope.kind()?.map(str::to_owned);
        let session = self.identify(&envelope).await?;
        let Some(kind) = kind else { return Ok(None) };
        if let Some(seq) = envelope.seq {
            match self.last {
                Some(last) if seq <= last => return Ok(None),
                Some(last) if seq > last + 1 => {
                    self.told("gap", json!({ "after": last, "before": seq })).await;
                }
                _ => {}
            }
            self.last = Some(seq);
        }
        if kind == HOOK {
            let Hook { agent, payload } = serde_json::from_value(envelope.data)
                .map_err(|error| Failure::new(Code::Invalid, format!("that is no hook: {error}")))?;
            self.engine.hook(&session, agent.as_deref(), payload).await?;
            return Ok(None);
        }
        let event = self.engine.tell(&session, "sidecar", &kind, envelope.data).await?;
        Ok(Some(event.seq))
    }

    /// An event of our own about what was told.
    async fn told(&self, kind: &str, data: Value) {
        if let Some(session) = &self.session
            && let Err(failure) = self.engine.tell(session, "sidecar", kind, data).await
        {
            tracing::debug!("{failure}");
        }
    }

    /// The session that the sender belongs to: by its mark, or by its process.
    async fn identify(&mut self, envelope: &Envelope) -> Result<SessionId, Failure> {
        if let Some((session, token)) = envelope.credentials().filter(|_| !self.settled) {
            let session = credentials::session_of(&self.engine, session, token).await?;
            self.settled = envelope.only;
            return Ok(self.session.insert(session).clone());
        }
        if let Some(session) = &self.session {
            return Ok(session.clone());
        }
        match rights::origin(&self.engine, self.peer).await {
            Origin::Session(id) => Ok(self.session.insert(id).clone()),
            Origin::Outside | Origin::Unclear => {
                Err(Failure::new(Code::Forbidden, "the sender is not part of a session").hint(
                    "begin with {\"v\":1,\"session\":…,\"token\":…} of WHARF_SESSION_ID and WHARF_TOKEN",
                ))
            }
        }
    }
}
