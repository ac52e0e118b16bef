//! Finds a session by name, id or the start of an id, in memory or in the store.

use std::sync::Arc;

use wharf_model::{Code, Failure, Name, Session, SessionId, State};
use wharf_store::{SessionRow, StoreError};

use crate::Result;
use crate::instance::disk;
use crate::instance::engine::Engine;
use crate::instance::shared::without_start_data;
use crate::session::handle::{Handle, Stage};

/// The shortest start of an id that finds a session.
const MIN_PREFIX_LEN: usize = 4;

impl Engine {
    /// The session of a name, an id, or the start of an id that only one session has.
    pub async fn find(&self, key: &str) -> Result<Arc<Session>> {
        Ok(self.handle(key).await?.session())
    }

    pub(crate) async fn handle(&self, key: &str) -> Result<Arc<Handle>> {
        let registry = &self.shared.registry;
        if let Some(handle) = registry.by_name(key) {
            return Ok(handle);
        }
        if let Ok(id) = key.parse::<SessionId>() {
            if let Some(handle) = registry.by_id(&id) {
                return Ok(handle);
            }
            if let Some(row) = self.row(&id).await? {
                return self.past(row).await;
            }
        }
        if let Ok(name) = key.parse::<Name>()
            && let Some(row) = self.query(move |store| store.by_name(name.as_str())).await?
        {
            return self.past(row).await;
        }
        self.by_prefix(key).await
    }

    /// The session of an id, in memory or from its directory and the history.
    pub(crate) async fn handle_of(&self, id: &SessionId) -> Result<Arc<Handle>> {
        if let Some(handle) = self.shared.registry.by_id(id) {
            return Ok(handle);
        }
        match self.row(id).await? {
            Some(row) => self.past(row).await,
            None => Err(Failure::new(Code::NotFound, format!("there is no session {:?}", id.as_str()))
                .hint("`wharf ls` lists them")),
        }
    }

    async fn by_prefix(&self, key: &str) -> Result<Arc<Handle>> {
        let unknown = || {
            let hint = Name::hint_of(&self.shared.registry.in_groups(key));
            Failure::new(Code::NotFound, format!("there is no session {key:?}"))
                .hint(hint.unwrap_or_else(|| "`wharf ls` lists them".to_owned()))
        };
        if key.len() < MIN_PREFIX_LEN
            || !key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            return Err(unknown());
        }
        let here = self.shared.registry.by_prefix(key);
        let prefix = key.to_owned();
        let mut there = self.query(move |store| store.by_prefix(&prefix)).await?;
        there.retain(|row| here.iter().all(|handle| handle.id != row.id));
        match (&here[..], there.pop()) {
            ([], None) => Err(unknown()),
            ([handle], None) => Ok(Arc::clone(handle)),
            ([], Some(row)) if there.is_empty() => self.past(row).await,
            _ => Err(Failure::new(Code::Invalid, format!("more than one id starts with {key:?}"))
                .hint("give more of it, or the name")),
        }
    }

    pub(crate) async fn row(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        let id = id.clone();
        self.query(move |store| store.by_id(&id)).await
    }

    /// Asks the store off the async threads: it may be behind a disk that is slow.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        question: impl FnOnce(&wharf_store::Store) -> std::result::Result<T, StoreError> + Send + 'static,
    ) -> Result<T> {
        let store = self.shared.store.clone();
        let answer = self.shared.tasks.spawn_blocking(move || question(&store)).await;
        let broken =
            |error: String| Failure::new(Code::Internal, format!("the history cannot be read: {error}"));
        answer.map_err(|error| broken(error.to_string()))?.map_err(|error| broken(error.to_string()))
    }

    /// A session that is no longer in memory, from its directory and the history.
    async fn past(&self, row: SessionRow) -> Result<Arc<Handle>> {
        let shared = Arc::clone(&self.shared);
        let tasks = &self.shared.tasks;
        tasks
            .spawn_blocking(move || past(&shared, row))
            .await
            .map_err(|error| Failure::new(Code::Internal, format!("reading failed: {error}")))?
    }
}

/// A session that is over, from its directory and the history. It is not entered anywhere.
pub(crate) fn past(shared: &crate::instance::shared::Shared, row: SessionRow) -> Result<Arc<Handle>> {
    let dir = shared.home.session(&row.id);
    let Some(ticket) = disk::ticket(&dir)? else {
        return Err(no_ticket(&row.name));
    };
    let state = if row.state.is_over() { row.state } else { State::Lost };
    let mut session = shared.describe(&ticket, state);
    session.since = row.exit.as_ref().map_or(row.created, |exit| exit.ended);
    session.exit = row.exit;
    session.run = row.run;
    Ok(Handle::new(session, without_start_data(ticket), Stage::Exists))
}

pub(crate) fn no_ticket(name: &Name) -> Failure {
    Failure::new(Code::NotFound, format!("the directory of session {name} is gone"))
        .hint("`wharf gc` clears what is left of it")
}
