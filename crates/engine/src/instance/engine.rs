//! Defines `Engine`, the handle to one instance: open, close, list, follow changes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use tokio::sync::broadcast;
use wharf_model::{Grant, Group, Home, Session, SessionId};

use crate::Result;
use crate::instance::config::Config;
use crate::instance::filter::Filter;
use crate::instance::shared::Shared;
use crate::instance::{disk, open};

/// The engine of one instance. A clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    _owner: Arc<Owner>,
}

/// Asks the tasks to leave when the last handle is dropped: they hold what they share, but not this.
pub(crate) struct Owner(pub(crate) Arc<Shared>);

/// Something that became known.
#[derive(Debug, Clone)]
pub enum Change {
    /// A session is new or something of it changed.
    Session(Arc<Session>),
    /// A session was removed.
    Removed(SessionId),
    /// Changes were missed because the reader was slow: look at everything again.
    Missed,
}

/// Follows changes of all sessions. A slow reader is told so, and delays nobody.
pub struct Changes(broadcast::Receiver<Change>);

impl Changes {
    /// The next change; `None` once the engine is gone.
    pub async fn next(&mut self) -> Option<Change> {
        match self.0.recv().await {
            Ok(change) => Some(change),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Change::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Engine {
    /// Opens an instance: takes its lock, reads what is known and finds again what lives.
    pub async fn open(config: Config) -> Result<Self> {
        let owner = open::open(config).await?;
        Ok(Self { shared: Arc::clone(&owner.0), _owner: Arc::new(owner) })
    }

    /// Ends every task of the engine, writes what is left to write and lets the instance go. Its sessions run on.
    ///
    /// Tasks leave by themselves; those that have not after [`Timeouts::call`](crate::Timeouts::call) are dropped where they
    /// are, as a daemon that is killed drops them: what they had begun is on disk, and the next engine goes on from there.
    pub async fn close(&self) {
        self.shared.tasks.close(self.shared.timeouts.call).await;
        self.shared.close_backends().await;
        let (store, within) = (self.shared.store.clone(), self.shared.timeouts.call);
        // A panic there is reported by the panic hook, and the directories are the truth.
        let _ = self.shared.tasks.spawn_blocking(move || store.flush(within)).await;
        self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Makes the instance's own directories and lock again, where they were deleted under us. Fails with
    /// [`Locked`](wharf_model::Code::Locked) where another engine has taken the place.
    pub fn reclaim(&self) -> Result<()> {
        let home = &self.shared.home;
        disk::create_instance_dirs(home)?;
        match self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(lock) => lock.renew(home),
            None => Ok(()),
        }
    }

    /// Where the instance lives.
    pub fn home(&self) -> &Home {
        &self.shared.home
    }

    /// Says whether somebody serves the events socket from now on. Commands that start while one does have it as `WHARF_EVENTS`.
    pub fn set_events_served(&self, served: bool) {
        self.shared.events_served.store(served, Ordering::Release);
    }

    /// Sessions in the order of creation: all that are not over, and the newest thousand that are.
    pub fn list(&self, filter: &Filter) -> Vec<Arc<Session>> {
        let sessions = self.shared.registry.all().into_iter().map(|handle| handle.session());
        sessions.filter(|session| filter.matches(session)).collect()
    }

    /// Whether a session that is listed belongs to this group.
    pub fn has_group(&self, group: &Group) -> bool {
        self.shared.registry.all().iter().any(|handle| handle.session().group.as_ref() == Some(group))
    }

    /// How many sessions are not over.
    pub fn live(&self) -> usize {
        self.shared.registry.live()
    }

    /// Follows changes from now on.
    pub fn changes(&self) -> Changes {
        Changes(self.shared.changes.subscribe())
    }

    /// Looks at files of others beside the engine's thread, with a deadline.
    pub async fn look_beside<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.shared.beside.look(what, work).await
    }

    /// The live session whose holder or command this process is. A pid that was given to a stranger has another start time.
    pub fn session_of_process(&self, pid: i32, start: u64) -> Option<SessionId> {
        let handle = self.shared.registry.of_process(pid)?;
        let ticket = handle.ticket();
        let known = [ticket.holder.as_ref(), ticket.command.as_ref()];
        known.iter().flatten().any(|is| is.pid == pid && is.start == start).then(|| handle.id.clone())
    }

    /// The live session whose command has this pid, and when that started.
    pub fn session_of_leader(&self, pid: i32) -> Option<(SessionId, u64)> {
        let handle = self.shared.registry.of_process(pid)?;
        let ticket = handle.ticket();
        let command = ticket.command.as_ref().filter(|command| command.pid == pid)?;
        Some((handle.id.clone(), command.start))
    }

    /// What a session was given beyond itself; none where there is no such session.
    pub fn grant_of(&self, id: &SessionId) -> Option<Grant> {
        Some(Grant::of(&self.shared.registry.by_id(id)?.ticket().spec))
    }

    /// The session that started this one.
    pub fn starter_of(&self, id: &SessionId) -> Option<SessionId> {
        self.shared.registry.by_id(id)?.ticket().spec.starter.clone()
    }

    /// The mark of a session's processes, by which one is known whom nobody sees.
    pub fn is_mark_of(&self, id: &SessionId, token: &str) -> bool {
        let handle = self.shared.registry.by_id(id);
        handle.is_some_and(|handle| {
            let known = &handle.ticket().token;
            !known.is_empty() && same(known.as_bytes(), token.as_bytes())
        })
    }
}

/// Compares in a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.tasks.ask_to_leave();
        self.0.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
