//! Defines the engine's entry for one session: its snapshot, ticket, connection and task.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use wharf_backend::Connection;
use wharf_model::{Session, SessionId, Ticket};

use crate::observe::observed::Observed;
use crate::session::requests::Command;

/// How long the task of a session that is over may take for its last steps, and how often that is checked.
const TASK_END_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

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
            0 => Stage::Starting,
            1 => Stage::Exists,
            _ => Stage::Gone,
        }
    }

    /// Sets the stage, and wakes those who wait for it.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
        self.session.send_modify(|_| ());
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
        let until = tokio::time::Instant::now() + TASK_END_TIMEOUT;
        while self.has_task() && tokio::time::Instant::now() < until {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
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
