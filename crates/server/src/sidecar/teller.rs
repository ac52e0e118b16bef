//! Reads one client's events line by line, checks its session, and stores them.

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use wharf_api::linux::Peer;
use wharf_engine::Engine;
use wharf_holder::linux::callers::Found;
use wharf_model::{Code, Failure, SessionId};

use super::account::{Accounts, Room, Seat};
use super::envelope::Envelope;
use super::lines::{Line, Lines};
use crate::credentials;

/// The longest line.
const MAX_LINE_LEN: usize = 16 << 20;
/// A line beyond this is read on another thread, so that others need not wait for it.
const LARGE_LINE_LEN: usize = 256 << 10;
/// How long an answer may take to be taken.
const ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

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
    /// What is known of where it comes from.
    found: Found,
    lines: Lines<OwnedReadHalf>,
    answers: OwnedWriteHalf,
    accounts: Arc<Accounts>,
    /// For whom it tells.
    seat: Seat,
    /// Whether it may not be another one any more.
    settled: bool,
    /// The sender's last number.
    last: Option<u64>,
    /// Lines that were not taken.
    skipped: u64,
}

impl Teller {
    pub(super) fn new(
        engine: Engine,
        peer: Peer,
        found: Found,
        stream: UnixStream,
        accounts: Arc<Accounts>,
    ) -> Self {
        let (reader, answers) = stream.into_split();
        let lines = Lines::new(reader, MAX_LINE_LEN);
        let seat = accounts.nobody();
        Self { engine, peer, found, lines, answers, accounts, seat, settled: false, last: None, skipped: 0 }
    }

    /// Takes lines until there are no more. Where there are many already, nobody takes a place without a name.
    pub(super) async fn run(mut self, crowded: bool) {
        if crowded
            && let Some(id) = self.found.session.clone()
            && let Err(failure) = self.sit(&id)
        {
            tracing::warn!("{failure}");
            return;
        }
        let ended = self.take_all().await;
        if let Err(error) = ended {
            tracing::debug!(pid = self.peer.pid, "a teller of events hung up: {error}");
        }
        if self.skipped > 0 {
            let who = self.seat.id().map_or_else(|| format!("pid {}", self.peer.pid), ToString::to_string);
            tracing::warn!("{} lines of {who} were no events, or too long", self.skipped);
        }
    }

    async fn take_all(&mut self) -> io::Result<()> {
        while let Some(line) = self.lines.next().await? {
            let (line, room) = match line {
                Line::Whole(line) => (line, None),
                Line::Long(line) => {
                    let Some((line, room)) = self.take_long(line).await? else { continue };
                    (line, Some(room))
                }
            };
            let length = line.len();
            if !line.trim_ascii().is_empty() {
                self.take(line).await?;
            }
            // Whoever waits for himself holds nothing that others wait for.
            drop(room);
            self.seat.charge(length).await;
            // Others have their turn after every line.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Reads the rest of a long line, once there is room for it; passes over one that is too long.
    async fn take_long(&mut self, line: Vec<u8>) -> io::Result<Option<(Vec<u8>, Room)>> {
        if self.seat.id().is_none()
            && let Some(id) = self.found.session.clone()
        {
            self.sit(&id).map_err(io::Error::other)?;
        }
        let Some(room) = self.seat.room().await else { return Ok(None) };
        if let Some(line) = self.lines.rest(line).await? {
            return Ok(Some((line, room)));
        }
        drop(room);
        self.skipped += 1;
        loop {
            let (count, ended) = self.lines.skip().await?;
            self.seat.charge(count).await;
            if ended {
                break;
            }
        }
        self.told("cut", json!({ "longest": MAX_LINE_LEN })).await;
        Ok(None)
    }

    async fn take(&mut self, line: Vec<u8>) -> io::Result<()> {
        let read = if line.len() > LARGE_LINE_LEN {
            let _turn = self.accounts.reading.acquire().await.map_err(io::Error::other)?;
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
            tokio::time::timeout(ANSWER_TIMEOUT, self.answers.write_all(answer.as_bytes())).await??;
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
            self.engine.session(session.as_str()).await?.hook(agent.as_deref(), payload).await?;
            return Ok(None);
        }
        let event =
            self.engine.session(session.as_str()).await?.tell("sidecar", &kind, envelope.data).await?;
        Ok(Some(event.seq))
    }

    /// An event of our own about what was told.
    async fn told(&self, kind: &str, data: Value) {
        let Some(session) = self.seat.id() else { return };
        let told = async { self.engine.session(session.as_str()).await?.tell("sidecar", kind, data).await };
        if let Err(failure) = told.await {
            tracing::debug!("{failure}");
        }
    }

    /// Tells for this session from now on.
    fn sit(&mut self, session: &SessionId) -> Result<(), Failure> {
        if self.seat.id() != Some(session) {
            self.seat = self.accounts.seat(session).ok_or_else(|| {
                Failure::new(
                    Code::Exhausted,
                    format!("session {session} has too many connections for events"),
                )
                .hint("close those that tell nothing more")
            })?;
        }
        Ok(())
    }

    /// The session that the sender speaks for.
    async fn identify(&mut self, envelope: &Envelope) -> Result<SessionId, Failure> {
        let said = envelope.credentials().filter(|_| !self.settled);
        if said.is_none()
            && let Some(session) = self.seat.id()
        {
            return Ok(session.clone());
        }
        let session = credentials::speaker(&self.engine, &self.found, said).await?;
        self.settled |= said.is_some() && envelope.only;
        self.sit(&session)?;
        Ok(session)
    }
}
