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

use super::exchange::parse;
use super::holder_client::HolderClient;
use super::output::LogOutput;
use super::pending_requests::Reply;
use super::{exec, records, stats};
use crate::request;

/// A request that the holder does at once takes no longer than this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a holder may take to say what became of input that is taken back: whoever typed it has waited already.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a holder that is asked for an end may take to say anything at all.
const FIRST_WORD_TIMEOUT: Duration = Duration::from_secs(3);
/// How often it is looked meanwhile whether somebody has stopped it.
const STOPPED_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// What is done beyond the grace of a stop before the holder is taken for stuck: killing, draining, recording.
const STOP_MARGIN: Duration = Duration::from_secs(10);
/// The most input in one frame: what the holder holds at most, so that it is typed in one piece.
const MAX_INPUT_LEN: usize = 1 << 20;
/// How long to wait before input is offered again to a terminal that takes none.
const INPUT_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A session, by way of its holder.
pub(super) struct HolderConnection {
    client: Arc<HolderClient>,
    /// One writer at a time: a long input is not mixed with another's.
    writing: Semaphore,
}

impl HolderConnection {
    pub(super) fn new(client: Arc<HolderClient>) -> Self {
        Self { client, writing: Semaphore::new(1) }
    }

    /// Types one piece, offering it again while the terminal takes none.
    async fn type_piece(&self, bytes: &[u8], until: Instant) -> Result<()> {
        loop {
            let (seq, mut told) = self.client.request(Kind::Input, bytes)?;
            let answer = match tokio::time::timeout_at(until, &mut told).await {
                Ok(reply) => reply.unwrap_or_else(|_| Err(self.client.closed())),
                Err(_) => self.withdraw(seq, &mut told, bytes.len()).await,
            };
            match answer {
                Ok(_) => {
                    let now = Some(Millis::from(std::time::SystemTime::now()));
                    self.client.status.send_modify(|status| status.last_input = now);
                    return Ok(());
                }
                Err(busy) if busy.code == Code::Busy => {
                    if Instant::now() >= until {
                        return Err(late(0, bytes.len()));
                    }
                    tokio::time::sleep_until(until.min(Instant::now() + INPUT_RETRY_PAUSE)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Takes back what is not typed yet, and finds out what became of it.
    async fn withdraw(&self, seq: u32, told: &mut tokio::sync::oneshot::Receiver<Reply>, of: usize) -> Reply {
        let cancelled = self.client.ask(Kind::Cancel, &seq.to_le_bytes(), CANCEL_TIMEOUT).await;
        // The holder answers in order: what it had to say of the input itself is here by now.
        if let Ok(reply) = told.try_recv() {
            return reply;
        }
        self.client.forget(seq);
        let cancelled = cancelled.map_err(|failure| match failure.code {
            Code::Timeout => {
                deaf("the holder of the session does not answer; a part of the input may have gone in")
            }
            _ => failure,
        })?;
        match parse::<Option<usize>>(&cancelled)? {
            Some(written) => Err(late(written, of)),
            None => Err(Failure::new(Code::Unreachable, "the holder lost track of the input")),
        }
    }
}

fn deaf(message: &str) -> Failure {
    Failure::new(Code::Timeout, message)
        .hint("it may be stopped; `wharf kill` ends the session without it, and what it holds")
}

fn late(written: usize, of: usize) -> Failure {
    let message = format!("{written} of {of} bytes went into the terminal in time; the rest was withdrawn");
    Failure::new(Code::Timeout, message).hint("the command does not read its input")
}

#[async_trait]
impl Connection for HolderConnection {
    async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        let until = Instant::now() + within;
        let turn = tokio::time::timeout_at(until, self.writing.acquire()).await;
        let _turn = turn.map_err(|_| late(0, bytes.len()))?;
        for (number, piece) in bytes.chunks(MAX_INPUT_LEN).enumerate() {
            let before = number * MAX_INPUT_LEN;
            self.type_piece(piece, until).await.map_err(|failure| match failure.code {
                Code::Timeout if before > 0 => late(before, bytes.len()),
                _ => failure,
            })?;
        }
        Ok(())
    }

    async fn close_input(&self) -> Result<()> {
        self.client.ask(Kind::CloseInput, &[], REQUEST_TIMEOUT).await.map(drop)
    }

    async fn pending(&self) -> Result<Pending> {
        let pending: wire::PendingInput =
            parse(&self.client.ask(Kind::Pending, &[], REQUEST_TIMEOUT).await?)?;
        let wire::PendingInput { queued, unread, canonical, echo } = pending;
        Ok(Pending { queued, unread, canonical, echo })
    }

    async fn resize(&self, size: Size) -> Result<()> {
        self.client.ask(Kind::Resize, &request::resize(size), REQUEST_TIMEOUT).await.map(drop)
    }

    async fn signal(&self, signal: i32, tree: bool) -> Result<()> {
        self.client.ask(Kind::Signal, &request::signal(signal, tree), REQUEST_TIMEOUT).await.map(drop)
    }

    async fn stop(&self, stop: Stop) -> Result<ExitRecord> {
        let within = stop.grace + STOP_MARGIN;
        let grace = Millis(stop.grace.as_millis() as u64);
        let request = wire::StopRequest { grace, reason: stop.reason, by: stop.by };
        let request =
            serde_json::to_vec(&request).map_err(|e| Failure::new(Code::Internal, e.to_string()))?;
        let stopped = self.client.ask(Kind::Stop, &request, within);
        // A question that is answered at once stands behind it: who does not answer that one does not hear at all.
        let heard = async {
            let answer = self.client.ask(Kind::Status, &[], FIRST_WORD_TIMEOUT);
            tokio::pin!(answer);
            let answer = loop {
                // Again and again: a signal that stops it may still be on its way.
                self.client.wake();
                tokio::select! {
                    answer = &mut answer => break answer,
                    () = tokio::time::sleep(STOPPED_POLL_INTERVAL) => {}
                }
            };
            match answer {
                Err(failure)
                    if failure.code == Code::Timeout && self.client.status.borrow().silent.is_some() =>
                {
                    Err(deaf(
                        "the holder of the session does not answer, and nothing was ended; it ends if that one goes on",
                    ))
                }
                _ => std::future::pending().await,
            }
        };
        let stopped = tokio::select! {
            biased;
            stopped = stopped => stopped,
            deaf = heard => deaf,
        };
        // It may have ended by itself meanwhile.
        match stopped {
            Ok(record) => parse(&record),
            Err(failure) => match self.client.status.borrow().exit.clone() {
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
            None => Err(self.client.closed()),
        }
    }

    fn status(&self) -> watch::Receiver<Status> {
        self.client.status.subscribe()
    }

    async fn output(&self, from: Offset) -> Result<Box<dyn Output>> {
        Ok(Box::new(LogOutput::open(&self.client.home, from, self.status())?))
    }

    async fn stats(&self) -> Result<Stats> {
        let status: wire::HolderStatus = parse(&self.client.ask(Kind::Status, &[], REQUEST_TIMEOUT).await?)?;
        let home = self.client.home.clone();
        let told = if stats::asks(&home) {
            Some(parse(&self.client.ask(Kind::Usage, &[], REQUEST_TIMEOUT).await?)?)
        } else {
            None
        };
        let stats = tokio::task::spawn_blocking(move || stats::read(&home, told, status.last_input)).await;
        let stats = stats.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        stats.map_err(|error| Failure::system("cannot measure the session", &error))
    }

    async fn exec(&self, request: ExecRequest) -> Result<i32> {
        let (home, elsewhere) = (self.client.home.clone(), self.client.is_elsewhere());
        // A thread of its own: it waits for as long as the command takes, or a holder pleases, and those who wait for a
        // short look at a disk must not stand behind it.
        let (tell, told) = tokio::sync::oneshot::channel();
        let run = move || {
            let sandboxed = || records::read_ticket(&home).is_ok_and(|ticket| ticket.spec.sandbox.is_some());
            drop(tell.send(exec::run(&home, elsewhere || sandboxed(), &request)));
        };
        let thread = std::thread::Builder::new().name("exec".to_owned()).spawn(run);
        thread.map_err(|error| Failure::system("cannot run a further command", &error))?;
        told.await.map_err(|error| Failure::new(Code::Internal, error.to_string()))?
    }
}
