use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::watch;
use wharf_model::{Event, Offset};

use super::journal::Journal;
use crate::Result;
use crate::shared::now;

/// How long the file may grow before the older half of the events is in another one, and how many such there are.
const LARGEST: u64 = 16 << 20;

/// The numbered events of one session, on disk.
pub(crate) struct Events {
    path: PathBuf,
    open: Mutex<Option<Open>>,
    /// The number of the last one; readers wait for it to grow.
    last: watch::Sender<u64>,
}

struct Open {
    journal: Journal,
}

impl Events {
    /// The events in a session's directory. Nothing is opened before there is something to write or read.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), open: Mutex::new(None), last: watch::Sender::new(0) }
    }

    /// Numbers and keeps an event.
    pub(crate) fn add(&self, offset: Offset, source: &str, kind: &str, data: Value) -> Result<Event> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.opened(&mut open)?;
        if open.journal.length() > LARGEST {
            self.turn_over(open)?;
        }
        let seq = *self.last.borrow() + 1;
        let (kind, source) = (kind.to_owned(), source.to_owned());
        let event = Event { seq, at: now(), offset, kind, source, data };
        open.journal.append(&event)?;
        self.last.send_replace(seq);
        Ok(event)
    }

    /// Events after a number, as far as they are kept.
    pub(crate) fn after(&self, seq: u64) -> Result<Vec<Event>> {
        let mut events: Vec<Event> = Journal::read(&self.older())?;
        events.extend(Journal::read::<Event>(&self.path)?);
        events.retain(|event| event.seq > seq);
        Ok(events)
    }

    /// Follows the number of the last event.
    pub(crate) fn last(&self) -> Result<watch::Receiver<u64>> {
        self.opened(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))?;
        Ok(self.last.subscribe())
    }

    fn opened<'a>(&self, open: &'a mut Option<Open>) -> Result<&'a mut Open> {
        if open.is_none() {
            let (journal, events) = Journal::open::<Event>(&self.path)?;
            let mut last = events.last().map_or(0, |event| event.seq);
            if last == 0 {
                last = Journal::read::<Event>(&self.older())?.last().map_or(0, |event| event.seq);
            }
            self.last.send_replace(last);
            *open = Some(Open { journal });
        }
        Ok(open.as_mut().expect("it was just opened"))
    }

    fn turn_over(&self, open: &mut Open) -> Result<()> {
        let named =
            |error| wharf_model::Failure::system(format!("cannot rename {}", self.path.display()), &error);
        std::fs::rename(&self.path, self.older()).map_err(named)?;
        open.journal = Journal::open::<serde::de::IgnoredAny>(&self.path)?.0;
        Ok(())
    }

    fn older(&self) -> PathBuf {
        self.path.with_extension("older")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_a_new_start_and_after_turning_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        let add = |events: &Events, data: &str| {
            events.add(Offset(7), "engine", "state", Value::from(data)).unwrap().seq
        };
        let events = Events::at(&path);
        assert_eq!((add(&events, "a"), add(&events, "b")), (1, 2));
        let events = Events::at(&path);
        assert_eq!(add(&events, "c"), 3);
        let large = "x".repeat(9 << 20);
        assert_eq!((add(&events, &large), add(&events, &large), add(&events, "d")), (4, 5, 6));
        assert!(path.with_extension("older").exists());
        let seqs: Vec<u64> = events.after(2).unwrap().iter().map(|event| event.seq).collect();
        assert_eq!(seqs, [3, 4, 5, 6]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(add(&Events::at(&path), "e"), 6, "what is left decides");
    }
}
