//! Acts on running sessions: stop, kill, signal, write, resize, exec, wait, restart.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use wharf_backend::{Connection, ExecRequest, Output, Pending, check_pins};
use wharf_model::{Code, ExitRecord, Failure, Home, Offset, Reason, Session, Size, State, Stats};

use crate::Result;
use crate::command::{Command, Restarter, StopAsked};
use crate::engine::Engine;
use crate::handle::{Handle, Stage};
use crate::reading::{Following, Logged, log_end};
use crate::task::{self, Launching, Phase};

/// How often a message to a task that is just leaving is sent again.
const MAX_SEND_TRIES: usize = 4;

/// What is done to a session that runs.
impl Engine {
    /// Ends a session: TERM to the whole tree, grace, KILL until nothing is left. One that is over stays so.
    pub async fn stop(&self, key: &str, grace: Option<Duration>, by: &str) -> Result<ExitRecord> {
        let handle = self.handle(key).await?;
        let grace = grace.unwrap_or_else(|| self.grace(&handle));
        self.end(&handle, grace, Reason::Stopped, by).await
    }

    /// Ends a session at once.
    pub async fn kill(&self, key: &str, by: &str) -> Result<ExitRecord> {
        let handle = self.handle(key).await?;
        self.end(&handle, Duration::ZERO, Reason::Killed, by).await
    }

    /// Sends a signal to the command, or to its whole tree.
    pub async fn signal(&self, key: &str, signal: i32, tree: bool) -> Result<()> {
        let connection = self.connection(key).await?;
        self.within(key, connection.signal(signal, tree)).await
    }

    /// Types at a session. Returns when all of it is in the terminal or pipe.
    pub async fn write(&self, key: &str, bytes: &[u8], within: Duration) -> Result<()> {
        let connection = self.connection(key).await?;
        // The connection keeps the deadline itself, and says how much went in.
        let late = within + self.shared.timeouts.call;
        tokio::time::timeout(late, connection.write(bytes, within))
            .await
            .unwrap_or_else(|_| Err(slow(key, late)))
    }

    /// Ends the input of a pipe session.
    pub async fn close_input(&self, key: &str) -> Result<()> {
        let connection = self.connection(key).await?;
        self.within(key, connection.close_input()).await
    }

    /// How much input the application has not read, and the terminal's mode.
    pub async fn pending(&self, key: &str) -> Result<Pending> {
        let connection = self.connection(key).await?;
        self.within(key, connection.pending()).await
    }

    /// Changes the terminal's size.
    pub async fn resize(&self, key: &str, size: Size) -> Result<()> {
        let connection = self.connection(key).await?;
        self.within(key, connection.resize(size.sane())).await
    }

    /// What a session uses; of one that is over, what its log holds.
    pub async fn stats(&self, key: &str) -> Result<Stats> {
        let handle = self.handle(key).await?;
        if !handle.is_over() {
            let connection = connected(&handle)?;
            return self.within(key, connection.stats()).await;
        }
        let log = self.shared.home.session(&handle.id).join(Home::LOG);
        let log_start = wharf_log::Reader::bounds(&log).map_or(Offset(0), |(start, _)| start);
        Ok(Stats { log_start, log_end: log_end(&log)?, ..Stats::default() })
    }

    /// Runs one more command in the session's place and tree.
    pub async fn exec(&self, key: &str, request: ExecRequest) -> Result<i32> {
        let connection = self.connection(key).await?;
        connection.exec(request).await
    }

    /// Reads output from an offset on. With `follow` it goes on until the session is over, else until what there is now.
    pub async fn output(&self, key: &str, from: Offset, follow: bool) -> Result<Box<dyn Output>> {
        let handle = self.handle(key).await?;
        if follow && !handle.is_over() {
            return Ok(Box::new(Following::new(&self.shared, &handle, from)));
        }
        Ok(Box::new(Logged::new(self.shared.home.session(&handle.id).join(Home::LOG), from)))
    }

    /// Waits until a session is over: restarts are not its end.
    pub async fn wait(&self, key: &str) -> Result<ExitRecord> {
        let handle = self.handle(key).await?;
        let mut watch = handle.watch();
        let mut closing = self.shared.closing.subscribe();
        loop {
            let session = watch.borrow_and_update().clone();
            if session.state.is_over() {
                return over(&session);
            }
            if handle.stage() == Stage::Gone {
                return Err(Failure::new(Code::NotFound, format!("session {} was removed", session.name)));
            }
            tokio::select! {
                changed = watch.changed() => drop(changed),
                _ = closing.wait_for(|closing| *closing) => {
                    return Err(Failure::new(Code::Unreachable, "the engine is closing; the session goes on"));
                }
            }
        }
    }

    /// Ends a session if it runs and starts it again: same id and name, next run, its log goes on.
    pub async fn restart(&self, key: &str, grace: Option<Duration>, by: &str) -> Result<Arc<Session>> {
        self.restart_as(key, grace, by, false).await
    }

    /// The same, and what the paths of the host mean that the session was given is decided anew. Only for somebody who is
    /// outside of all sessions.
    pub async fn restart_repinned(
        &self,
        key: &str,
        grace: Option<Duration>,
        by: &str,
    ) -> Result<Arc<Session>> {
        self.restart_as(key, grace, by, true).await
    }

    async fn restart_as(
        &self,
        key: &str,
        grace: Option<Duration>,
        by: &str,
        repin: bool,
    ) -> Result<Arc<Session>> {
        let mut handle = self.handle(key).await?;
        let grace = grace.unwrap_or_else(|| self.grace(&handle));
        if !repin && !handle.is_over() {
            self.check_pins(&handle).await?;
        }
        for _ in 0..MAX_SEND_TRIES {
            let (reply, answer) = oneshot::channel();
            let restarter = Restarter { reply, repin };
            let session = handle.session();
            if session.state.is_over() {
                handle = self.shared.registry.canonical(&handle);
                let ended = over(&session)?;
                let launching = Launching::Again { ended, restarters: vec![restarter] };
                if !task::spawn(&self.shared, &handle, Phase::Launch(Box::new(launching)), 0) {
                    handle.let_go().await;
                    continue;
                }
                self.shared.registry.revived(&handle.id);
            } else {
                let stop = StopAsked {
                    grace,
                    reason: Reason::Stopped,
                    by: by.to_owned(),
                    reply: None,
                    again: false,
                    refused: None,
                };
                if !send(&handle, Command::Restart(Box::new(stop), restarter)).await {
                    continue;
                }
            }
            if let Ok(answer) = answer.await {
                return answer.map(|()| handle.session());
            }
        }
        Err(busy(&handle))
    }

    /// Refuses a restart that could not start again, before anything is stopped for it.
    async fn check_pins(&self, handle: &Arc<Handle>) -> Result<()> {
        let pins = handle.ticket().spec.pins.clone();
        if pins.is_empty() {
            return Ok(());
        }
        let name = handle.session().name.clone();
        let what = format!("what {name} was given of this host");
        self.shared.beside.look(&what, move || check_pins(&name, &pins)).await?
    }

    pub(crate) async fn end(
        &self,
        handle: &Arc<Handle>,
        grace: Duration,
        reason: Reason,
        by: &str,
    ) -> Result<ExitRecord> {
        for _ in 0..MAX_SEND_TRIES {
            let session = handle.session();
            if session.state.is_over() {
                return over(&session);
            }
            let (reply, answer) = oneshot::channel();
            let (by, reply) = (by.to_owned(), Some(reply));
            let stop = StopAsked { grace, reason, by, reply, again: false, refused: None };
            if send(handle, Command::Stop(Box::new(stop))).await
                && let Ok(answer) = answer.await
            {
                return answer;
            }
        }
        Err(busy(handle))
    }

    /// The way to a session that runs.
    pub(crate) async fn connection(&self, key: &str) -> Result<Arc<dyn Connection>> {
        connected(&*self.handle(key).await?)
    }

    fn grace(&self, handle: &Handle) -> Duration {
        handle.ticket().spec.grace.map_or(self.shared.timeouts.grace, |grace| Duration::from_millis(grace.0))
    }

    pub(crate) async fn within<T>(&self, key: &str, call: impl Future<Output = Result<T>>) -> Result<T> {
        let within = self.shared.timeouts.call;
        tokio::time::timeout(within, call).await.unwrap_or_else(|_| Err(slow(key, within)))
    }
}

/// Sends a message to a session's task; false where it has none.
pub(crate) async fn send(handle: &Handle, command: Command) -> bool {
    let sender = handle.ways().commands.clone();
    if let Some(sender) = sender {
        sender.send(command).await.is_ok()
    } else {
        // A task that is just leaving, or one that is about to be: let it.
        tokio::task::yield_now().await;
        false
    }
}

/// The way to a session that runs, or why there is none.
pub(crate) fn connected(handle: &Handle) -> Result<Arc<dyn Connection>> {
    let session = handle.session();
    let name = &session.name;
    if session.state.is_over() {
        return Err(Failure::new(Code::Ended, format!("session {name} has ended"))
            .hint(format!("`wharf logs {name}` shows its output, `wharf restart {name}` starts it again")));
    }
    if let Some(connection) = handle.ways().connection.clone() {
        return Ok(connection);
    }
    let detail = session.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
    Err(if session.state == State::Starting {
        Failure::new(Code::NotStarted, format!("session {name} does not run yet{detail}"))
    } else {
        Failure::new(Code::Unreachable, format!("session {name} cannot be reached{detail}"))
            .hint("nothing is concluded from that; it is looked for again and again")
    })
}

fn over(session: &Session) -> Result<ExitRecord> {
    session.exit.clone().ok_or_else(|| {
        Failure::new(Code::Internal, format!("session {} is over and has no exit record", session.name))
    })
}

fn slow(key: &str, within: Duration) -> Failure {
    Failure::new(Code::Timeout, format!("session {key} did not answer within {within:?}"))
}

fn busy(handle: &Handle) -> Failure {
    Failure::new(
        Code::Unreachable,
        format!("session {} is between two states; nothing was done", handle.session().name),
    )
    .hint("try again")
}
