//! Pauses and resumes sessions, and hears of those that somebody else paused.

use std::sync::Arc;

use tokio::sync::broadcast;
use wharf_backend::{Backend, Freezer, Frozen};
use wharf_model::{Code, Failure, Session, State};

use crate::Result;
use crate::instance::shared::Shared;
use crate::session::calls::connected;
use crate::session::handle::Handle;
use crate::session::session_handle::SessionHandle;

/// Pausing sessions, and letting them go on.
impl SessionHandle {
    /// Makes a session stand still: nothing of it runs until it goes on, is stopped or killed. Messages wait.
    pub async fn pause(&self) -> Result<Arc<Session>> {
        let handle = self.entry().await?;
        if !handle.session().paused {
            connected(&handle)?;
        }
        self.set_paused(&handle, true).await
    }

    /// Lets a session go on.
    pub async fn unpause(&self) -> Result<Arc<Session>> {
        let handle = self.entry().await?;
        let name = &handle.session().name;
        if handle.is_over() {
            return Err(Failure::new(Code::Ended, format!("session {name} has ended"))
                .hint(format!("`wharf restart {name}` starts it again")));
        }
        self.set_paused(&handle, false).await?;
        // One that could not be asked anything while it stood still is found again first.
        let mut found = handle.watch();
        let found = found.wait_for(|session| session.state != State::Unknown);
        let _ = tokio::time::timeout(self.engine.shared.timeouts.adopt, found).await.map(drop);
        Ok(handle.session())
    }

    async fn set_paused(&self, handle: &Arc<Handle>, still: bool) -> Result<Arc<Session>> {
        let ticket = handle.ticket();
        let freezer = self.engine.shared.freezer(handle).ok_or_else(|| {
            Failure::unsupported("pausing sessions", format!("the {} backend", ticket.backend))
        })?;
        self.within(freezer.freeze(&ticket, still)).await?;
        self.engine.shared.note_paused(handle, still);
        Ok(handle.session())
    }
}

impl Shared {
    pub(crate) fn freezer(&self, handle: &Handle) -> Option<&dyn Freezer> {
        self.backend(&handle.ticket().backend).ok()?.freezer()
    }

    /// Publishes that a session is paused, or goes on, and has the courier look at waiting messages again.
    pub(crate) fn note_paused(self: &Arc<Self>, handle: &Arc<Handle>, still: bool) {
        let before = handle.session();
        if before.paused == still || before.state.is_over() {
            return;
        }
        self.update(handle, |session| session.paused = still);
        if let Some(observed) = handle.observed() {
            let kind = if still { "paused" } else { "resumed" };
            observed.add_event("engine", kind, serde_json::Value::Null);
            // Messages that waited for it are looked at again.
            observed.wake_courier(self, handle);
        }
    }

    /// Lets a paused session go on that is to be ended: a paused process handles no signal.
    pub(crate) async fn unpause_to_end(self: &Arc<Self>, handle: &Arc<Handle>) {
        if !handle.session().paused {
            return;
        }
        let Some(freezer) = self.freezer(handle) else { return };
        let ticket = handle.ticket();
        match tokio::time::timeout(self.timeouts.call, freezer.freeze(&ticket, false)).await {
            Ok(Ok(())) => self.note_paused(handle, false),
            Ok(Err(failure)) => {
                tracing::warn!(session = %handle.id, %failure, "a paused session does not go on");
            }
            Err(_) => tracing::warn!(session = %handle.id, "a paused session does not go on in time"),
        }
    }

    /// Asks the backend whether a session is paused.
    pub(crate) async fn ask_paused(self: &Arc<Self>, handle: &Arc<Handle>) {
        let Some(freezer) = self.freezer(handle) else { return };
        let ticket = handle.ticket();
        let asked = tokio::time::timeout(self.timeouts.adopt, freezer.is_frozen(&ticket)).await;
        if let Ok(Ok(still)) = asked {
            self.note_paused(handle, still);
        }
    }
}

/// Follows the backend's news of sessions that somebody else paused, until the engine closes.
pub(crate) fn follow_freezer_news(shared: &Arc<Shared>, backend: &Arc<dyn Backend>) {
    let Some(mut news) = backend.freezer().and_then(Freezer::news) else { return };
    let (name, tasks) = (backend.name(), shared.tasks.clone());
    // It must not keep alive what it tells of.
    let shared = Arc::downgrade(shared);
    let closed = tasks.clone();
    tasks.spawn_helper(async move {
        loop {
            let heard = tokio::select! {
                () = closed.closing() => return,
                heard = news.recv() => heard,
            };
            let Some(shared) = shared.upgrade() else { return };
            match heard {
                Ok(Frozen { session, still }) => {
                    let handle = shared.registry.by_id(&session);
                    // News come late, of an earlier run perhaps: how it is now is asked.
                    if let Some(handle) = handle.filter(|handle| handle.session().paused != still) {
                        shared.ask_paused(&handle).await;
                    }
                }
                Err(broadcast::error::RecvError::Closed) => return,
                // Too much happened at once: each is asked about.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    let all = shared.registry.all().into_iter();
                    for handle in all.filter(|handle| !handle.is_over()) {
                        if handle.ticket().backend == name {
                            shared.ask_paused(&handle).await;
                        }
                    }
                }
            }
        }
    });
}
