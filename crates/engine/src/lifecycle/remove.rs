//! Removes a session that is over: stray processes, directory, name, history.

use std::sync::Arc;
use std::time::Duration;

use wharf_model::{Code, Failure, Reason, SessionId, Ticket};

use crate::Result;
use crate::instance::disk;
use crate::instance::engine::{Change, Engine};
use crate::session::handle::{Handle, Stage};
use crate::session::session_handle::SessionHandle;

impl SessionHandle {
    /// Removes a session that is over: stray processes, directory, name, history. With `force`, ends it first.
    pub async fn remove(&self, force: bool) -> Result<()> {
        let handle = self.entry().await?;
        let name = handle.session().name.clone();
        if !handle.is_over() {
            if !force {
                return Err(Failure::new(Code::Running, format!("session {name} is not over")).hint(
                    format!("`wharf stop {name}` ends it, `wharf rm --force {name}` ends and removes it"),
                ));
            }
            let grace = self.engine.shared.timeouts.grace;
            self.end(&handle, grace, Reason::Stopped, "remove").await?;
        }
        self.engine.sweep(&handle).await?;
        self.engine.forget(&handle).await
    }
}

impl Engine {
    /// Ends what is left of a session that is over. Says how many processes that were.
    pub(crate) async fn sweep(&self, handle: &Arc<Handle>) -> Result<u32> {
        let (ticket, within) = (handle.ticket(), self.shared.timeouts.call);
        if never_ran(&ticket) {
            return Ok(0);
        }
        let backend = self.shared.backend(&ticket.backend)?;
        tokio::time::timeout(within, backend.sweep(&ticket))
            .await
            .unwrap_or_else(|_| Err(no_answer(backend.name(), within)))
    }

    /// What that would end, by pids.
    pub(crate) async fn strays(&self, handle: &Arc<Handle>) -> Result<Vec<i32>> {
        let (ticket, within) = (handle.ticket(), self.shared.timeouts.call);
        if never_ran(&ticket) {
            return Ok(Vec::new());
        }
        let backend = self.shared.backend(&ticket.backend)?;
        tokio::time::timeout(within, backend.strays(&ticket))
            .await
            .unwrap_or_else(|_| Err(no_answer(backend.name(), within)))
    }

    /// Takes a session that is over out of everything.
    pub(crate) async fn forget(&self, handle: &Arc<Handle>) -> Result<()> {
        let shared = &self.shared;
        self.wait_for_task_end(handle).await?;
        let dir = shared.home.session(&handle.id);
        // What its task still writes would be there again.
        handle.wait_for_task_end().await;
        let (letting_go, gone) = (Arc::clone(shared), Arc::clone(handle));
        let removed = shared
            .tasks
            .spawn_blocking(move || {
                disk::remove_session(&dir)?;
                letting_go.release_environments(&gone.id, &gone.ticket().spec);
                Ok::<_, Failure>(())
            })
            .await;
        removed.map_err(|error| Failure::new(Code::Internal, format!("removing failed: {error}")))??;
        disk::free_link(&shared.home, &handle.session().name, &handle.id);
        self.publish_removal(&handle.id);
        handle.set_stage(Stage::Gone);
        Ok(())
    }

    /// Has its place take away what it kept for the session on purpose.
    async fn wait_for_task_end(&self, handle: &Arc<Handle>) -> Result<()> {
        let ticket = handle.ticket();
        if !ticket.spec.made.as_ref().is_some_and(|made| made.kept) {
            return Ok(());
        }
        let Some(keeper) = self.shared.backend(&ticket.backend)?.keeper() else { return Ok(()) };
        let within = self.shared.timeouts.call;
        tokio::time::timeout(within, keeper.forget(&ticket)).await.unwrap_or_else(|_| {
            let message = format!("the container that was kept was not taken away within {within:?}");
            Err(Failure::new(Code::Unreachable, message))
        })
    }

    fn publish_removal(&self, id: &SessionId) {
        self.shared.registry.remove(id);
        self.shared.store.remove(id);
        // Nobody may be listening.
        let _ = self.shared.changes.send(Change::Removed(id.clone()));
    }
}

fn never_ran(ticket: &Ticket) -> bool {
    ticket.started.0 == 0 && ticket.holder.is_none() && ticket.command.is_none()
}

fn no_answer(backend: &str, within: Duration) -> Failure {
    Failure::new(Code::Unreachable, format!("the backend {backend} did not answer within {within:?}"))
}
