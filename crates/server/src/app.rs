//! Holds what all routes share: the engine, the lists, and work under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use wharf_engine::Engine;
use wharf_model::{Home, Millis, SessionId};

use crate::list::List;
use crate::work::Work;

/// What the routes share.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) home: Home,
    pub(crate) work: Work,
    pub(crate) full: List,
    pub(crate) brief: List,
    pub(crate) rows: List,
    pub(crate) started: Millis,
    /// The hard limits that sessions on this host inherit, in words.
    pub(crate) hard_limits: Vec<String>,
    writers: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
}

impl App {
    pub(crate) fn new(engine: Engine, home: Home, work: Work) -> Self {
        Self {
            engine,
            home,
            work,
            full: List::full(),
            brief: List::brief(),
            rows: List::rows(),
            started: SystemTime::now().into(),
            hard_limits: wharf_boundary::limits::lowered().iter().map(ToString::to_string).collect(),
            writers: Mutex::default(),
        }
    }

    /// The turn to write to a session: a text that comes in pieces must not mix with another.
    pub(crate) fn writer(&self, id: &SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writers.get(id).and_then(Weak::upgrade) {
            return writer;
        }
        writers.retain(|_, writer| writer.strong_count() > 0);
        let writer = Arc::default();
        writers.insert(id.clone(), Arc::downgrade(&writer));
        writer
    }
}
