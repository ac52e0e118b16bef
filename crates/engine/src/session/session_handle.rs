//! One session as a program that embeds the engine holds it: a handle with a method for each thing that can be done.

use std::sync::Arc;

use tokio::sync::watch;
use wharf_model::{Session, SessionId};

use crate::Result;
use crate::instance::engine::Engine;
use crate::session::handle::Handle;

/// One session of an engine.
///
/// A handle is cheap to clone, may be used from any task, and keeps nothing alive: dropping the last one ends neither the
/// session nor the engine's care for it. It means the session by its id, so it stays valid when the session is renamed or
/// restarted; once the session is removed, every method answers [`NotFound`](wharf_model::Code::NotFound). The id can be
/// stored: after a restart of the program [`Engine::session`] finds the same session by it.
#[derive(Clone)]
pub struct SessionHandle {
    pub(crate) engine: Engine,
    pub(crate) id: SessionId,
}

/// Follows what is known of a session. A slow reader misses what was in between, and never the last.
pub struct SessionWatch(watch::Receiver<Arc<Session>>);

impl SessionWatch {
    /// What is known now.
    pub fn current(&self) -> Arc<Session> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits until something of it changed; `None` once nothing can change any more.
    pub async fn changed(&mut self) -> Option<Arc<Session>> {
        self.0.changed().await.ok()?;
        Some(Arc::clone(&self.0.borrow_and_update()))
    }
}

impl Engine {
    /// The session of a name, an id, or the start of an id that only one session has.
    pub async fn session(&self, key: &str) -> Result<SessionHandle> {
        let id = self.handle(key).await?.id.clone();
        Ok(SessionHandle { engine: self.clone(), id })
    }
}

impl SessionHandle {
    /// Its id, which it has for good.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// What is known of it now.
    pub async fn snapshot(&self) -> Result<Arc<Session>> {
        Ok(self.entry().await?.session())
    }

    /// Follows what is known of it.
    pub async fn watch(&self) -> Result<SessionWatch> {
        Ok(SessionWatch(self.entry().await?.watch()))
    }

    /// What the engine holds of it.
    pub(crate) async fn entry(&self) -> Result<Arc<Handle>> {
        self.engine.handle_of(&self.id).await
    }

    /// What it is called in a message to somebody: its name where that is at hand, else its id.
    pub(crate) fn called(&self) -> String {
        let known = self.engine.shared.registry.by_id(&self.id);
        known.map_or_else(|| self.id.to_string(), |handle| handle.session().name.to_string())
    }
}

impl std::fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Two handles are the same where they mean the same session of the same engine.
impl PartialEq for SessionHandle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.engine.shared, &other.engine.shared)
    }
}

impl Eq for SessionHandle {}
