use std::sync::Arc;

use wharf_model::{Code, Failure, Reason, SessionId};

use crate::Result;
use crate::disk;
use crate::engine::{Change, Engine};
use crate::handle::{Handle, Stage};

impl Engine {
    /// Removes a session that is over: stray processes, directory, name, history. With `force`, ends it first.
    pub async fn remove(&self, key: &str, force: bool) -> Result<()> {
        let handle = self.handle(key).await?;
        let name = handle.session().name.clone();
        if !handle.is_over() {
            if !force {
                return Err(Failure::new(Code::Running, format!("session {name} is not over")).hint(
                    format!("`wharf stop {name}` ends it, `wharf rm --force {name}` ends and removes it"),
                ));
            }
            let grace = self.shared.timeouts.grace;
            self.end(&handle, grace, Reason::Stopped, "remove").await?;
        }
        self.sweep(&handle).await?;
        self.forget(&handle).await
    }

    /// Ends what is left of a session that is over. Says how many processes that were.
    pub(crate) async fn sweep(&self, handle: &Arc<Handle>) -> Result<u32> {
        let ticket = handle.ticket();
        if ticket.started.0 == 0 && ticket.holder.is_none() && ticket.command.is_none() {
            // It never ran.
            return Ok(0);
        }
        let within = self.shared.timeouts.call;
        let backend = self.shared.backend(&ticket.backend)?;
        tokio::time::timeout(within, backend.sweep(&ticket)).await.unwrap_or_else(|_| {
            let message = format!("the backend {} did not answer within {within:?}", backend.name());
            Err(Failure::new(Code::Unreachable, message))
        })
    }

    /// Takes a session that is over out of everything.
    pub(crate) async fn forget(&self, handle: &Arc<Handle>) -> Result<()> {
        let shared = &self.shared;
        let dir = shared.home.session(&handle.id);
        let (letting_go, gone) = (Arc::clone(shared), Arc::clone(handle));
        let removed = tokio::task::spawn_blocking(move || {
            disk::remove_session(&dir)?;
            letting_go.undress(&gone.id, &gone.ticket().spec);
            Ok::<_, Failure>(())
        })
        .await;
        removed.map_err(|error| Failure::new(Code::Internal, format!("removing failed: {error}")))??;
        disk::free_link(&shared.home, &handle.session().name, &handle.id);
        self.gone(&handle.id);
        handle.set_stage(Stage::Gone);
        Ok(())
    }

    fn gone(&self, id: &SessionId) {
        self.shared.registry.remove(id);
        self.shared.store.remove(id);
        // Nobody may be listening.
        let _ = self.shared.changes.send(Change::Removed(id.clone()));
    }
}
