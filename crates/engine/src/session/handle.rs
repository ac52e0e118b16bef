//! Defines the engine's entry for one session: its snapshot, ticket, connection and task.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use wharf_backend::Connection;
use wharf_model::{Session, SessionId, Ticket};

use crate::observe::observed::Observed;
use crate::session::requests::Command;

/// How long the task of a session that is over may take for its last steps.
const TASK_END_TIMEOUT: Duration = Duration::from_secs(10);

/// One session, as the engine holds it: what is known of it, and the way to its task.
pub(crate) struct Handle {
    pub(crate) id: SessionId,
    session: watch::Sender<Arc<Session>>,
    stage: AtomicU8,
    /// How many are attached whose terminal answers what the application asks.
    typists: AtomicU32,
    links: Mutex<Links>,
    /// Held while the session's small files are read and written again; never across an await.
    disk: Mutex<()>,
    /// What observing and delivering needs; absent until somebody asks for it.
    observed: OnceLock<Arc<Observed>>,
}

/// How to reach the session; each part is absent while there is nothing to reach.
pub(crate) struct Links {
    /// The ticket without what only a start needs: variables, prompt, motd. It is small, and there are many.
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) connection: Option<Arc<dyn Connection>>,
    pub(crate) commands: Option<mpsc::Sender<Command>>,
}

/// Whether a session exists yet, or still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Its first start is under way, and may still fail without a trace.
    Starting,
    /// It existed when this engine opened, and nothing of it was found yet.
    Searching,
    /// It exists.
    Exists,
    /// It was taken back or removed.
    Gone,
}

impl Handle {
    pub(crate) fn new(session: Session, ticket: Ticket, stage: Stage) -> Arc<Self> {
        Arc::new(Self {
            id: session.id.clone(),
            session: watch::Sender::new(Arc::new(session)),
            stage: AtomicU8::new(stage as u8),
            typists: AtomicU32::new(0),
            links: Mutex::new(Links { ticket: Arc::new(ticket), connection: None, commands: None }),
            disk: Mutex::new(()),
            observed: OnceLock::new(),
        })
    }

    /// What is known of it now.
    pub(crate) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session.borrow())
    }

    /// How many are attached whose terminal answers what the application asks.
    pub(crate) fn typists(&self) -> u32 {
        self.typists.load(Ordering::Acquire)
    }

    /// The same, as it is from now on. Returns what it was.
    pub(crate) fn set_typists(&self, typists: u32) -> u32 {
        self.typists.swap(typists, Ordering::AcqRel)
    }

    /// Follows what is known of it.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Session>> {
        self.session.subscribe()
    }

    /// Changes what is known of it. Returns the new snapshot where something is new in it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Session)) -> Option<Arc<Session>> {
        let mut changed = None;
        self.session.send_if_modified(|known| {
            let mut new = Session::clone(known);
            change(&mut new);
            if new == **known {
                return false;
            }
            if new.state != known.state {
                if new.since == known.since {
                    new.since = crate::instance::shared::now();
                }
                if (new.source, &new.evidence) == (known.source, &known.evidence) {
                    // Whoever changes it without saying why knows it from the session's own life.
                    (new.source, new.evidence) = (wharf_model::Source::Life, None);
                }
            }
            *known = Arc::new(new);
            changed = Some(Arc::clone(known));
            true
        });
        changed
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Stage::Starting as u8 => Stage::Starting,
            stage if stage == Stage::Searching as u8 => Stage::Searching,
            stage if stage == Stage::Exists as u8 => Stage::Exists,
            _ => Stage::Gone,
        }
    }

    /// Sets the stage, and wakes those who wait for it.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
        self.session.send_modify(|_| ());
    }

    /// Something is known of a session that this engine looked for, be it that it cannot be reached.
    pub(crate) fn end_search(&self) {
        if self.stage() == Stage::Searching {
            self.set_stage(Stage::Exists);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.session.borrow().state.is_over()
    }

    /// Whether a task looks after it.
    pub(crate) fn has_task(&self) -> bool {
        self.links().commands.is_some()
    }

    /// Waits until its task has ended, at most ten seconds: the task of a session that is over still frees ports and secrets.
    pub(crate) async fn wait_for_task_end(&self) {
        let mut changes = self.watch();
        // The sender is here, so it lives.
        let ended = changes.wait_for(|_| !self.has_task());
        let _ = tokio::time::timeout(TASK_END_TIMEOUT, ended).await.map(drop);
    }

    /// Says that no task looks after it any more, and wakes those who wait for that.
    pub(crate) fn end_task(&self) {
        self.links().commands = None;
        self.session.send_modify(|_| ());
    }

    pub(crate) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ticket(&self) -> Arc<Ticket> {
        Arc::clone(&self.links().ticket)
    }

    pub(crate) fn observed(&self) -> Option<&Arc<Observed>> {
        self.observed.get()
    }

    pub(crate) fn observed_or(&self, make: impl FnOnce() -> Observed) -> &Arc<Observed> {
        self.observed.get_or_init(|| Arc::new(make()))
    }

    pub(crate) fn disk(&self) -> MutexGuard<'_, ()> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use wharf_model::{Millis, Spec};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_task_wakes_those_who_wait_for_it() {
        let (id, name) = (SessionId::new(Millis(1), 1), "a".parse().unwrap());
        let ticket = Ticket::new(id, Millis(1), name, "x", "/", "t", Spec::new(["x"], "/"));
        let session = serde_json::json!({
            "id": ticket.id, "name": "a", "backend": "x", "state": "exited", "dir": "/", "created": 1,
            "attached": 0, "argv": ["x"], "tty": false, "run": 1, "state_since": 1, "path": "/", "isolation": "none",
        });
        let handle = Handle::new(serde_json::from_value(session).unwrap(), ticket, Stage::Exists);
        handle.links().commands = Some(mpsc::channel(1).0);
        let began = Instant::now();
        let (waits, ends) = (handle.wait_for_task_end(), async {
            tokio::task::yield_now().await;
            handle.end_task();
        });
        tokio::join!(waits, ends);
        assert_eq!(began.elapsed(), Duration::ZERO, "nobody looks again and again");
        handle.links().commands = Some(mpsc::channel(1).0);
        handle.wait_for_task_end().await;
        assert_eq!(began.elapsed(), TASK_END_TIMEOUT, "nobody waits for ever");
    }
}
