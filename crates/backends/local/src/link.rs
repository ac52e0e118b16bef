//! A live session of this host, as the contract has it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use wharf_backend::{Connection, ExecRequest, Output, Pending, Result, Status, Stop};
use wharf_holder::frame::Kind;
use wharf_holder::wire;
use wharf_model::{Code, ExitRecord, Failure, Millis, Offset, Size, Stats};

use crate::carrier::{Carrier, Reply};
use crate::output::LogOutput;
use crate::{exec, stats};

/// A request that the holder does at once takes no longer than this.
const PROMPT: Duration = Duration::from_secs(5);
/// What is done beyond the grace of a stop before the holder is taken for stuck: killing, draining, recording.
const STOP_MARGIN: Duration = Duration::from_secs(10);
/// The most input in one frame: what the holder holds at most, so that it is typed in one piece.
const INPUT: usize = 1 << 20;
/// How long to wait before input is offered again to a terminal that takes none.
const BUSY: Duration = Duration::from_millis(10);

/// A session, by way of its holder.
pub(crate) struct Link {
    carrier: Arc<Carrier>,
    /// One writer at a time: a long input is not mixed with another's.
    writing: Semaphore,
}

impl Link {
    pub(crate) fn new(carrier: Arc<Carrier>) -> Self {
        Self { carrier, writing: Semaphore::new(1) }
    }

    /// Types one piece, offering it again while the terminal takes none.
    async fn type_piece(&self, bytes: &[u8], until: Instant) -> Result<()> {
        loop {
            let (seq, mut told) = self.carrier.request(Kind::Input, bytes)?;
            let answer = match tokio::time::timeout_at(until, &mut told).await {
                Ok(reply) => reply.unwrap_or_else(|_| Err(self.carrier.closed())),
                Err(_) => self.withdraw(seq, &mut told, bytes.len()).await,
            };
            match answer {
                Ok(_) => {
                    let now = Some(Millis::from(std::time::SystemTime::now()));
                    self.carrier.status.send_modify(|status| status.last_input = now);
                    return Ok(());
                }
                Err(busy) if busy.code == Code::Busy => {
                    if Instant::now() >= until {
                        return Err(late(0, bytes.len()));
                    }
                    tokio::time::sleep_until(until.min(Instant::now() + BUSY)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Takes back what is not typed yet, and finds out what became of it.
    async fn withdraw(&self, seq: u32, told: &mut tokio::sync::oneshot::Receiver<Reply>, of: usize) -> Reply {
        let cancelled = self.carrier.ask(Kind::Cancel, &seq.to_le_bytes(), PROMPT).await;
        // The holder answers in order: what it had to say of the input itself is here by now.
        if let Ok(reply) = told.try_recv() {
            return reply;
        }
        self.carrier.forget(seq);
        match json::<Option<usize>>(&cancelled?)? {
            Some(written) => Err(late(written, of)),
            None => Err(Failure::new(Code::Unreachable, "the holder lost track of the input")),
        }
    }
}

fn late(written: usize, of: usize) -> Failure {
    let message = format!("{written} of {of} bytes went into the terminal in time; the rest was withdrawn");
    Failure::new(Code::Timeout, message).hint("the command does not read its input")
}

fn json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Failure::new(Code::Internal, format!("the holder's answer is odd: {e}")))
}

#[async_trait]
impl Connection for Link {
    async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        let until = Instant::now() + within;
        let turn = tokio::time::timeout_at(until, self.writing.acquire()).await;
        let _turn = turn.map_err(|_| late(0, bytes.len()))?;
        for (number, piece) in bytes.chunks(INPUT).enumerate() {
            let before = number * INPUT;
            self.type_piece(piece, until).await.map_err(|failure| match failure.code {
                Code::Timeout if before > 0 => late(before, bytes.len()),
                _ => failure,
            })?;
        }
        Ok(())
    }

    async fn close_input(&self) -> Result<()> {
        self.carrier.ask(Kind::CloseInput, &[], PROMPT).await.map(drop)
    }

    async fn pending(&self) -> Result<Pending> {
        let pending: wire::Pending = json(&self.carrier.ask(Kind::Pending, &[], PROMPT).await?)?;
        let wire::Pending { queued, unread, canonical, echo } = pending;
        Ok(Pending { queued, unread, canonical, echo })
    }

    async fn resize(&self, size: Size) -> Result<()> {
        let [c0, c1] = size.cols.to_le_bytes();
        let [r0, r1] = size.rows.to_le_bytes();
        self.carrier.ask(Kind::Resize, &[c0, c1, r0, r1], PROMPT).await.map(drop)
    }

    async fn signal(&self, signal: i32, tree: bool) -> Result<()> {
        let mut payload = signal.to_le_bytes().to_vec();
        payload.push(u8::from(tree));
        self.carrier.ask(Kind::Signal, &payload, PROMPT).await.map(drop)
    }

    async fn stop(&self, stop: Stop) -> Result<ExitRecord> {
        let within = stop.grace + STOP_MARGIN;
        let grace = Millis(stop.grace.as_millis() as u64);
        let request = wire::StopRequest { grace, reason: stop.reason, by: stop.by };
        let request =
            serde_json::to_vec(&request).map_err(|e| Failure::new(Code::Internal, e.to_string()))?;
        // It may have ended by itself meanwhile.
        match self.carrier.ask(Kind::Stop, &request, within).await {
            Ok(record) => json(&record),
            Err(failure) => match self.carrier.status.borrow().exit.clone() {
                Some(record) => Ok(record),
                None => Err(failure),
            },
        }
    }

    async fn wait(&self) -> Result<ExitRecord> {
        let mut status = self.status();
        let over = status.wait_for(|status| status.exit.is_some() || status.broken).await;
        match over.ok().and_then(|status| status.exit.clone()) {
            Some(record) => Ok(record),
            None => Err(self.carrier.closed()),
        }
    }

    fn status(&self) -> watch::Receiver<Status> {
        self.carrier.status.subscribe()
    }

    async fn output(&self, from: Offset) -> Result<Box<dyn Output>> {
        Ok(Box::new(LogOutput::open(&self.carrier.home, from, self.status())?))
    }

    async fn stats(&self) -> Result<Stats> {
        let status: wire::Status = json(&self.carrier.ask(Kind::Status, &[], PROMPT).await?)?;
        let home = self.carrier.home.clone();
        let told = if stats::sees(&home) {
            None
        } else {
            Some(json(&self.carrier.ask(Kind::Usage, &[], PROMPT).await?)?)
        };
        let stats = tokio::task::spawn_blocking(move || stats::read(&home, told, status.last_input)).await;
        let stats = stats.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        stats.map_err(|error| Failure::system("cannot measure the session", &error))
    }

    async fn exec(&self, request: ExecRequest) -> Result<i32> {
        let home = self.carrier.home.clone();
        let run = tokio::task::spawn_blocking(move || exec::run(&home, &request)).await;
        run.map_err(|error| Failure::new(Code::Internal, error.to_string()))?
    }
}
