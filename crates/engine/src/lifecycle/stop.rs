//! Ends, awaits and restarts a session by a message to its task.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use wharf_backend::check_pins;
use wharf_model::{Code, ExitRecord, Failure, Reason, Session};

use crate::Result;
use crate::session::handle::{Handle, Stage};
use crate::session::requests::{Command, RestartRequest, StopRequest};
use crate::session::session_handle::SessionHandle;
use crate::session::task::{self, Phase, RunStart};

/// How often a message to a task that is just leaving is sent again.
const MAX_SEND_TRIES: usize = 4;

impl SessionHandle {
    /// Ends a session: TERM to the whole tree, grace, KILL until nothing is left. One that is over stays so.
    pub async fn stop(&self, grace: Option<Duration>, by: &str) -> Result<ExitRecord> {
        let handle = self.entry().await?;
        let grace = grace.unwrap_or_else(|| self.grace(&handle));
        self.end(&handle, grace, Reason::Stopped, by).await
    }

    /// Ends a session at once.
    pub async fn kill(&self, by: &str) -> Result<ExitRecord> {
        let handle = self.entry().await?;
        self.end(&handle, Duration::ZERO, Reason::Killed, by).await
    }

    /// Waits until a session is over: restarts are not its end.
    pub async fn wait(&self) -> Result<ExitRecord> {
        let handle = self.entry().await?;
        let mut watch = handle.watch();
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
                () = self.engine.shared.closed() => {
                    return Err(Failure::new(Code::Unreachable, "the engine is closing; the session goes on"));
                }
            }
        }
    }

    /// Ends a session if it runs and starts it again: same id and name, next run, its log goes on.
    pub async fn restart(&self, grace: Option<Duration>, by: &str) -> Result<Arc<Session>> {
        self.restart_as(grace, by, false).await
    }

    /// The same, and what the paths of the host mean that the session was given is decided anew. Only for somebody who is
    /// outside of all sessions.
    pub async fn restart_repinned(&self, grace: Option<Duration>, by: &str) -> Result<Arc<Session>> {
        self.restart_as(grace, by, true).await
    }

    async fn restart_as(&self, grace: Option<Duration>, by: &str, repin: bool) -> Result<Arc<Session>> {
        let mut handle = self.entry().await?;
        let grace = grace.unwrap_or_else(|| self.grace(&handle));
        if !repin && !handle.is_over() {
            self.check_pins(&handle).await?;
        }
        for _ in 0..MAX_SEND_TRIES {
            let (reply, answer) = oneshot::channel();
            let restarter = RestartRequest { reply, repin };
            let session = handle.session();
            if session.state.is_over() {
                handle = self.engine.shared.registry.canonical(&handle);
                let ended = over(&session)?;
                let launching = RunStart::Again { ended, restarters: vec![restarter] };
                if !task::spawn(&self.engine.shared, &handle, Phase::StartRun(Box::new(launching)), 0) {
                    handle.wait_for_task_end().await;
                    continue;
                }
                self.engine.shared.registry.revived(&handle.id);
            } else {
                let stop = StopRequest {
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
        self.engine.shared.beside.look(&what, move || check_pins(&name, &pins)).await?
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
            let stop = StopRequest { grace, reason, by, reply, again: false, refused: None };
            if send(handle, Command::Stop(Box::new(stop))).await
                && let Ok(answer) = answer.await
            {
                return answer;
            }
        }
        Err(busy(handle))
    }

    fn grace(&self, handle: &Handle) -> Duration {
        handle
            .ticket()
            .spec
            .grace
            .map_or(self.engine.shared.timeouts.grace, |grace| Duration::from_millis(grace.0))
    }
}

/// Sends a message to a session's task; false where it has none.
pub(crate) async fn send(handle: &Handle, command: Command) -> bool {
    let sender = handle.links().commands.clone();
    if let Some(sender) = sender {
        sender.send(command).await.is_ok()
    } else {
        // A task that is just leaving, or one that is about to be: let it.
        tokio::task::yield_now().await;
        false
    }
}

fn over(session: &Session) -> Result<ExitRecord> {
    session.exit.clone().ok_or_else(|| {
        Failure::new(Code::Internal, format!("session {} is over and has no exit record", session.name))
    })
}

fn busy(handle: &Handle) -> Failure {
    Failure::new(
        Code::Unreachable,
        format!("session {} is between two states; nothing was done", handle.session().name),
    )
    .hint("try again")
}
