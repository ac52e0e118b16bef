//! Writes the list of sessions as text, and reuses what has not changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wharf_api::{Summary, rows};
use wharf_model::{Session, SessionId};

/// The list of sessions as text. What has not changed since the last time is not written again, so a list
/// of a thousand costs little more than one of ten.
pub(crate) struct List {
    text: fn(&Session) -> serde_json::Result<Vec<u8>>,
    /// What stands before, between and after the sessions.
    around: [&'static str; 3],
    written: Mutex<Written>,
}

/// A longer list is a history that somebody looks through; keeping its text would cost more than it saves.
const MAX_KEPT_SESSIONS: usize = 4096;

/// A JSON array.
const ARRAY: [&str; 3] = ["[", ",", "]"];

#[derive(Default)]
struct Written {
    /// Each session as it was last written. The engine replaces a snapshot and never changes one, so the
    /// pointer says whether it is still true.
    parts: HashMap<SessionId, (Arc<Session>, Bytes)>,
    /// The last whole list, and of which snapshots it was.
    whole: Option<(Vec<Arc<Session>>, Bytes)>,
}

impl List {
    /// Every field of each session.
    pub(crate) fn full() -> Self {
        Self { text: |session| serde_json::to_vec(session), around: ARRAY, written: Mutex::default() }
    }

    /// What lists show of each session.
    pub(crate) fn brief() -> Self {
        let text = |session: &Session| serde_json::to_vec(&Summary::from(session));
        Self { text, around: ARRAY, written: Mutex::default() }
    }

    /// What a table shows of each session.
    pub(crate) fn rows() -> Self {
        let text = |session: &Session| Ok(rows::line(session).into_bytes());
        Self { text, around: [rows::HEADING, "", ""], written: Mutex::default() }
    }

    /// The text of these sessions.
    pub(crate) fn write(&self, sessions: Vec<Arc<Session>>) -> serde_json::Result<Bytes> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, text)) = &written.whole
            && same(of, &sessions)
        {
            return Ok(text.clone());
        }
        let mut text = Vec::with_capacity(written.whole.as_ref().map_or(2, |(_, text)| text.len() + 1024));
        let [before, between, after] = self.around.map(str::as_bytes);
        text.extend_from_slice(before);
        for (at, session) in sessions.iter().enumerate() {
            if at > 0 {
                text.extend_from_slice(between);
            }
            text.extend_from_slice(&written.part(session, self.text)?);
        }
        text.extend_from_slice(after);
        let text = Bytes::from(text);
        written.trim(&sessions);
        written.whole = (sessions.len() <= MAX_KEPT_SESSIONS).then(|| (sessions, text.clone()));
        Ok(text)
    }

    /// The text of one session.
    pub(crate) fn one(&self, session: &Arc<Session>) -> serde_json::Result<Bytes> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).part(session, self.text)
    }
}

impl Written {
    /// Forgets sessions that were removed. A filtered list leaves the others alone.
    fn trim(&mut self, sessions: &[Arc<Session>]) {
        if sessions.len() > MAX_KEPT_SESSIONS {
            self.parts.clear();
        } else if self.parts.len() > 2 * sessions.len() + 64 {
            self.parts = sessions.iter().filter_map(|session| self.parts.remove_entry(&session.id)).collect();
        }
    }

    fn part(
        &mut self,
        session: &Arc<Session>,
        text: fn(&Session) -> serde_json::Result<Vec<u8>>,
    ) -> serde_json::Result<Bytes> {
        if let Some((of, text)) = self.parts.get(&session.id)
            && Arc::ptr_eq(of, session)
        {
            return Ok(text.clone());
        }
        let text = Bytes::from(text(session)?);
        self.parts.insert(session.id.clone(), (Arc::clone(session), text.clone()));
        Ok(text)
    }
}

fn same(a: &[Arc<Session>], b: &[Arc<Session>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[cfg(test)]
mod tests {
    use wharf_model::{Millis, Spec, State};

    use super::*;

    fn session(number: u64) -> Session {
        let spec = Spec::new(["sh"], "/");
        Session {
            id: SessionId::new(Millis(1), number),
            name: format!("s{number}").parse().unwrap(),
            group: None,
            backend: "fake".into(),
            state: State::Running,
            pid: Some(7),
            dir: spec.dir,
            created: Millis(1),
            attached: 0,
            exit: None,
            argv: spec.argv,
            labels: spec.labels,
            tty: true,
            run: 1,
            detail: None,
            since: Millis(1),
            source: wharf_model::Source::Life,
            evidence: None,
            agent: None,
            conversation: None,
            path: "/".into(),
            ports: Vec::new(),
            restart: spec.restart,
            limits: spec.limits,
            scope: wharf_model::Scope::default(),
            holder: None,
            size: spec.size,
            isolation: "none".into(),
            copy_to: None,
            environment: Vec::new(),
            chosen: None,
            project: None,
            guest: None,
            paused: false,
            suspended: false,
            mounts: Vec::new(),
            container: None,
            pins: Vec::new(),
        }
    }

    fn read(list: &List, sessions: &[Arc<Session>]) -> Vec<Session> {
        serde_json::from_slice(&list.write(sessions.to_vec()).unwrap()).unwrap()
    }

    #[test]
    fn a_list_is_always_what_the_sessions_are_now() {
        let list = List::full();
        assert_eq!(list.write(Vec::new()).unwrap(), "[]");
        let mut sessions: Vec<Arc<Session>> = (0..300).map(|number| Arc::new(session(number))).collect();
        let plain =
            |sessions: &[Arc<Session>]| sessions.iter().map(|s| Session::clone(s)).collect::<Vec<_>>();
        assert_eq!(read(&list, &sessions), plain(&sessions));
        // One changes, one goes, one comes, and some are asked for alone.
        sessions[7] = Arc::new(Session { state: State::Exited, ..session(7) });
        sessions.remove(3);
        sessions.push(Arc::new(session(1000)));
        assert_eq!(read(&list, &sessions), plain(&sessions));
        assert_eq!(read(&list, &sessions[5..9]), plain(&sessions[5..9]));
        assert_eq!(read(&list, &sessions), plain(&sessions));
    }

    #[test]
    fn what_has_not_changed_is_not_written_again() {
        let list = List::brief();
        let sessions: Vec<Arc<Session>> = (0..3).map(|number| Arc::new(session(number))).collect();
        let first = list.write(sessions.clone()).unwrap();
        let second = list.write(sessions.clone()).unwrap();
        assert_eq!(first.as_ptr(), second.as_ptr());
        let one = list.one(&sessions[0]).unwrap();
        assert_eq!(one.as_ptr(), list.one(&sessions[0]).unwrap().as_ptr());
    }

    #[test]
    fn rows_are_what_a_table_shows() {
        let list = List::rows();
        assert_eq!(list.write(Vec::new()).unwrap(), rows::HEADING);
        let text = list.write(vec![Arc::new(session(1)), Arc::new(session(2))]).unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        let found: Vec<_> = rows::read(text).unwrap().map(|row| (row.name, row.state, row.pid)).collect();
        assert_eq!(found, [("s1", "running", "7"), ("s2", "running", "7")]);
    }

    #[test]
    fn a_removed_session_is_forgotten() {
        let list = List::brief();
        let sessions: Vec<Arc<Session>> = (0..500).map(|number| Arc::new(session(number))).collect();
        list.write(sessions.clone()).unwrap();
        list.write(sessions[..1].to_vec()).unwrap();
        assert_eq!(list.written.lock().unwrap().parts.len(), 1);
    }
}
