use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wharf_model::{Session, SessionId};

/// The list of sessions as JSON text. What has not changed since the last time is not written again, so a list
/// of a thousand costs little more than one of ten.
#[derive(Default)]
pub(crate) struct List(Mutex<Written>);

/// A longer list is a history that somebody looks through; keeping its text would cost more than it saves.
const MOST: usize = 4096;

#[derive(Default)]
struct Written {
    /// Each session as it was last written. The engine replaces a snapshot and never changes one, so the
    /// pointer says whether it is still true.
    parts: HashMap<SessionId, (Arc<Session>, Bytes)>,
    /// The last whole list, and of which snapshots it was.
    whole: Option<(Vec<Arc<Session>>, Bytes)>,
}

impl List {
    /// The JSON array of these sessions.
    pub(crate) fn write(&self, sessions: Vec<Arc<Session>>) -> serde_json::Result<Bytes> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, text)) = &written.whole
            && same(of, &sessions)
        {
            return Ok(text.clone());
        }
        let mut text = Vec::with_capacity(written.whole.as_ref().map_or(2, |(_, text)| text.len() + 1024));
        text.push(b'[');
        for session in &sessions {
            if text.len() > 1 {
                text.push(b',');
            }
            text.extend_from_slice(&written.part(session)?);
        }
        text.push(b']');
        let text = Bytes::from(text);
        written.trim(&sessions);
        written.whole = (sessions.len() <= MOST).then(|| (sessions, text.clone()));
        Ok(text)
    }

    /// The JSON text of one session.
    pub(crate) fn one(&self, session: &Arc<Session>) -> serde_json::Result<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).part(session)
    }
}

impl Written {
    /// Forgets sessions that were removed. A filtered list leaves the others alone.
    fn trim(&mut self, sessions: &[Arc<Session>]) {
        if sessions.len() > MOST {
            self.parts.clear();
        } else if self.parts.len() > 2 * sessions.len() + 64 {
            self.parts = sessions.iter().filter_map(|session| self.parts.remove_entry(&session.id)).collect();
        }
    }

    fn part(&mut self, session: &Arc<Session>) -> serde_json::Result<Bytes> {
        if let Some((of, text)) = self.parts.get(&session.id)
            && Arc::ptr_eq(of, session)
        {
            return Ok(text.clone());
        }
        let text = Bytes::from(serde_json::to_vec(session.as_ref())?);
        self.parts.insert(session.id.clone(), (Arc::clone(session), text.clone()));
        Ok(text)
    }
}

fn same(a: &[Arc<Session>], b: &[Arc<Session>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}
