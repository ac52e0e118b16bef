//! Implements the connection to a session of the fake backend, and the reader of its output.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use wharf_model::{Capabilities, Code, ExitRecord, Millis, Offset, Size, Stats};

use super::Program;
use super::session::{Session, Wire, now};
use crate::{Connection, ExecRequest, Failure, Output, OutputChunk, Pending, Result, Status, Stop};

/// A connection to a session of the fake.
pub(super) struct FakeConnection {
    session: Arc<Session>,
    wire: Arc<Wire>,
    by: &'static str,
    can: Capabilities,
}

impl FakeConnection {
    pub(super) fn new(session: Arc<Session>, by: &'static str, can: Capabilities) -> Self {
        let wire = Arc::clone(&session.lock().wire);
        Self { session, wire, by, can }
    }

    fn need(&self, can: bool, what: &str) -> Result<()> {
        if can { Ok(()) } else { Err(Failure::unsupported(what, self.by)) }
    }

    /// That the session lives, as far as this connection can know.
    fn alive(&self) -> Result<()> {
        if self.session.lock().exit.is_some() {
            let id = &self.session.ticket.id;
            return Err(Failure::new(Code::Ended, format!("session {id} has ended")));
        }
        self.whole()
    }

    fn whole(&self) -> Result<()> {
        if self.wire.status.borrow().broken {
            let id = &self.session.ticket.id;
            return Err(Failure::new(Code::Unreachable, format!("the connection to session {id} broke")));
        }
        Ok(())
    }
}

#[async_trait]
impl Connection for FakeConnection {
    async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        let deadline = Instant::now() + within;
        let late = |done: usize| {
            let message = format!("{done} of {} bytes had gone in after {within:?}", bytes.len());
            Failure::new(Code::Timeout, message)
        };
        let _turn = timeout_at(deadline, self.session.writer.lock()).await.map_err(|_| late(0))?;
        let mut ticks = self.session.ticks();
        let mut done = 0;
        loop {
            ticks.borrow_and_update();
            self.alive()?;
            done += self.session.take(&bytes[done..]);
            if done == bytes.len() {
                // A command that this input ended has published its end by now, and that stands.
                self.session.lock().wire.status.send_if_modified(|status| {
                    status.last_input = Some(now());
                    status.exit.is_none()
                });
                return Ok(());
            }
            if timeout_at(deadline, ticks.changed()).await.is_err() {
                return Err(late(done));
            }
        }
    }

    async fn close_input(&self) -> Result<()> {
        self.need(!self.session.ticket.spec.tty, "closing the input of a terminal")?;
        self.alive()?;
        self.session.lock().closed = true;
        if self.session.program == Program::Echo {
            self.session.end(self.session.exited(0));
        }
        Ok(())
    }

    async fn pending(&self) -> Result<Pending> {
        self.need(self.can.pending_input, "asking for unread input")?;
        self.alive()?;
        let tty = self.session.ticket.spec.tty;
        let unread = self.session.lock().unread as u64;
        Ok(Pending { queued: 0, unread, canonical: tty, echo: tty })
    }

    async fn resize(&self, size: Size) -> Result<()> {
        self.need(self.can.resize && self.session.ticket.spec.tty, "resizing")?;
        self.alive()?;
        self.session.resize(size);
        Ok(())
    }

    async fn signal(&self, signal: i32, _tree: bool) -> Result<()> {
        self.need(self.can.signal, "signals")?;
        self.alive()?;
        self.session.signal(signal)
    }

    async fn stop(&self, stop: Stop) -> Result<ExitRecord> {
        self.whole()?;
        let end =
            |signal| self.session.end(self.session.signalled(signal, stop.reason, Some(stop.by.clone())));
        if stop.grace.is_zero() {
            return Ok(end(9));
        }
        if self.session.program.dies_of(15) {
            return Ok(end(15));
        }
        match tokio::time::timeout(stop.grace, self.wait()).await {
            Ok(ended) => ended,
            Err(_) => Ok(end(9)),
        }
    }

    async fn wait(&self) -> Result<ExitRecord> {
        let mut ticks = self.session.ticks();
        loop {
            ticks.borrow_and_update();
            if let Some(record) = &self.session.lock().exit {
                return Ok(record.clone());
            }
            self.whole()?;
            ticks.changed().await.expect("the session holds the sender");
        }
    }

    fn status(&self) -> watch::Receiver<Status> {
        self.wire.status.subscribe()
    }

    async fn output(&self, from: Offset) -> Result<Box<dyn Output>> {
        self.need(self.can.offsets || from == Offset(0), "reading from an offset")?;
        self.whole()?;
        let ticks = self.session.ticks();
        let (session, wire) = (Arc::clone(&self.session), Arc::clone(&self.wire));
        Ok(Box::new(FakeOutput { session, wire, ticks, at: from.0 as usize }))
    }

    async fn stats(&self) -> Result<Stats> {
        self.need(self.can.stats, "statistics")?;
        self.alive()?;
        let inner = self.session.lock();
        let last_input = inner.wire.status.borrow().last_input;
        Ok(Stats {
            cpu: Millis(now().0 - self.session.ticket.started.0),
            memory: 1 << 20,
            processes: 1,
            log_end: Offset(inner.log.len() as u64),
            log_start: Offset(0),
            last_output: inner.last_output,
            last_input,
            io: None,
            network: None,
        })
    }

    async fn exec(&self, request: ExecRequest) -> Result<i32> {
        self.need(self.can.exec, "running further commands")?;
        self.alive()?;
        let program = Program::parse(&request.argv, &request.env)?;
        let [_, stdout, _] = request.stdio;
        File::from(stdout)
            .write_all(&program.prints())
            .map_err(|error| Failure::system("cannot write the output of the command", &error))?;
        match program.ends() {
            Some((code, after)) => tokio::select! {
                () = tokio::time::sleep(after) => Ok(code),
                record = self.wait() => record.map(|_| 128 + 9),
            },
            // It ends with the session, killed.
            None => self.wait().await.map(|_| 128 + 9),
        }
    }
}

struct FakeOutput {
    session: Arc<Session>,
    wire: Arc<Wire>,
    ticks: watch::Receiver<u64>,
    at: usize,
}

#[async_trait]
impl Output for FakeOutput {
    async fn next(&mut self) -> Result<Option<OutputChunk>> {
        loop {
            self.ticks.borrow_and_update();
            {
                let inner = self.session.lock();
                if let Some((stream, bytes)) = inner.piece(self.at) {
                    let offset = Offset(self.at as u64);
                    self.at += bytes.len();
                    return Ok(Some(OutputChunk::Data { offset, stream, bytes }));
                }
                if inner.exit.is_some() {
                    return Ok(None);
                }
            }
            if self.wire.status.borrow().broken {
                let id = &self.session.ticket.id;
                return Err(Failure::new(Code::Unreachable, format!("the connection to session {id} broke")));
            }
            self.ticks.changed().await.expect("the session holds the sender");
        }
    }
}
