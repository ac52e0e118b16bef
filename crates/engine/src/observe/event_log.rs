//! Writes and reads a session's numbered events on disk.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;
use wharf_model::{Code, Event, ExitRecord, Failure, Offset};

use crate::Result;
use crate::instance::shared::now;
use crate::observe::journal::{Journal, place};

/// How long the file may grow before the older half of the events is in another one, and how many such there are.
const MAX_FILE_LEN: u64 = 16 << 20;

/// The numbered events of one session, on disk.
pub(crate) struct Events {
    path: PathBuf,
    open: Mutex<Option<Open>>,
    /// The number of the last one; readers wait for it to grow.
    last: watch::Sender<u64>,
}

struct Open {
    journal: Journal,
    /// The number of the file that is written now. The one before it is the older one.
    file: u64,
    /// Whether the last event is the session's end.
    ended: bool,
    /// Whether nothing may follow: the run's end was told.
    sealed: bool,
}

/// How far somebody has read: from the beginning, at first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventReader {
    file: u64,
    at: u64,
}

/// How much is read at once. A session tells as much as it likes, and whoever reads it holds up nobody.
const PIECE_LEN: u64 = 256 << 10;

/// Whether a session that may be at rest has told such an event. It is read in pieces, with room for others between them.
pub(crate) async fn any_event(path: &Path, is: impl Fn(&Event) -> bool) -> Result<bool> {
    for file in [older(path), path.to_owned()] {
        let mut at = 0;
        loop {
            let (events, next) = Journal::read_some::<Event>(&file, at, PIECE_LEN)?;
            if events.iter().any(&is) {
                return Ok(true);
            }
            if next == at {
                break;
            }
            at = next;
            tokio::task::yield_now().await;
        }
    }
    Ok(false)
}

/// Where the older half of the events is.
fn older(path: &Path) -> PathBuf {
    path.with_extension("older")
}

/// The event that ends a run, and that nothing follows until there is another.
const END: &str = "exit";

impl Events {
    /// The events in a session's directory. Nothing is opened before there is something to write or read.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), open: Mutex::new(None), last: watch::Sender::new(0) }
    }

    /// Numbers and keeps an event.
    pub(crate) fn add(&self, offset: Offset, source: &str, kind: &str, data: Value) -> Result<Event> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.opened(&mut open)?;
        if open.sealed {
            return Err(Failure::new(Code::Ended, "the session has ended, and so have its events"));
        }
        if open.journal.length() > MAX_FILE_LEN {
            self.turn_over(open)?;
        }
        let seq = *self.last.borrow() + 1;
        let (kind, source) = (kind.to_owned(), source.to_owned());
        let event = Event { seq, at: now(), offset, kind, source, data };
        open.journal.append(&event)?;
        open.ended = event.kind == END;
        self.last.send_replace(seq);
        Ok(event)
    }

    /// Tells the end of a run, unless that was done, and takes nothing after it.
    pub(crate) fn end(&self, offset: Offset, exit: &ExitRecord) -> Result<()> {
        let ended = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            self.opened(&mut open)?.ended
        };
        if !ended {
            self.add(offset, "engine", END, json!(exit))?;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.opened(&mut open)?.sealed = true;
        Ok(())
    }

    /// Takes events again: there is another run.
    pub(crate) fn go_on(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = open.as_mut() {
            open.sealed = false;
        }
    }

    /// Some of the events after a number, in order, from where a reader is on; nothing once it has read all that are kept. It
    /// reads a bounded piece at a time, which may have none of them.
    pub(crate) fn read(&self, after: u64, reader: &mut EventReader) -> Result<Option<Vec<Event>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.opened(&mut open)?.file;
        loop {
            // The older one of a reader that was left behind is gone.
            if reader.file + 1 < current {
                *reader = EventReader { file: current - 1, at: 0 };
            }
            let older = reader.file < current;
            let path = if older { &self.older() } else { &self.path };
            let (mut events, at) = Journal::read_some::<Event>(path, reader.at, PIECE_LEN)?;
            if at > reader.at {
                reader.at = at;
                events.retain(|event| event.seq > after);
                return Ok(Some(events));
            }
            if !older {
                return Ok(None);
            }
            *reader = EventReader { file: current, at: 0 };
        }
    }

    /// A reader of what comes from now on.
    pub(crate) fn reader_at_end(&self) -> Result<EventReader> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.opened(&mut open)?;
        Ok(EventReader { file: open.file, at: open.journal.length() })
    }

    /// Events after a number, as far as they are kept.
    #[cfg(test)]
    pub(crate) fn after(&self, seq: u64) -> Result<Vec<Event>> {
        let (mut all, mut reader) = (Vec::new(), EventReader::default());
        while let Some(events) = self.read(seq, &mut reader)? {
            all.extend(events);
        }
        Ok(all)
    }

    /// Whether the end of the run was told, and nothing is taken any more.
    pub(crate) fn is_sealed(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|open| open.sealed)
    }

    /// Follows the number of the last event.
    pub(crate) fn last(&self) -> Result<watch::Receiver<u64>> {
        self.opened(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))?;
        Ok(self.last.subscribe())
    }

    fn opened<'a>(&self, open: &'a mut Option<Open>) -> Result<&'a mut Open> {
        if open.is_none() {
            let (journal, mut last) = Journal::open_at_end::<Event>(&self.path)?;
            if last.is_none() && self.older().exists() {
                last = Journal::open_at_end::<Event>(&self.older())?.1;
            }
            self.last.send_replace(last.as_ref().map_or(0, |event| event.seq));
            let ended = last.is_some_and(|event| event.kind == END);
            *open = Some(Open { journal, file: 1, ended, sealed: false });
        }
        Ok(open.as_mut().expect("it was just opened"))
    }

    fn turn_over(&self, open: &mut Open) -> Result<()> {
        let named = |error| Failure::system(format!("cannot rename {}", self.path.display()), &error);
        let older = self.older();
        // A directory is not replaced by a file; anything else is, itself and not what it points to.
        if std::fs::symlink_metadata(&older).is_ok_and(|meta| meta.is_dir()) {
            let (dir, name) = place(&older).map_err(named)?;
            dir.put_aside(name).map_err(named)?;
        }
        match std::fs::rename(&self.path, older) {
            // It was turned over before, and no new one could be made then.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            renamed => renamed.map_err(named)?,
        }
        open.journal = Journal::open::<serde::de::IgnoredAny>(&self.path)?.0;
        open.file += 1;
        Ok(())
    }

    fn older(&self) -> PathBuf {
        older(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_the_end_of_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        let kinds = |events: &Events| -> Vec<String> {
            events.after(0).unwrap().into_iter().map(|event| event.kind).collect()
        };
        let exit = ExitRecord::default();
        let events = Events::at(&path);
        events.add(Offset(0), "engine", "state", Value::Null).unwrap();
        events.end(Offset(1), &exit).unwrap();
        let late = events.add(Offset(1), "stream", "turn.ended", Value::Null);
        assert_eq!(late.unwrap_err().code, Code::Ended);
        // Another engine finds it ended, and does not say so twice.
        let events = Events::at(&path);
        events.end(Offset(1), &exit).unwrap();
        assert_eq!(kinds(&events), ["state", "exit"]);
        events.go_on();
        events.add(Offset(2), "engine", "restarted", Value::Null).unwrap();
        events.end(Offset(3), &exit).unwrap();
        assert_eq!(kinds(&events), ["state", "exit", "restarted", "exit"]);
    }

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

    #[test]
    fn a_reader_goes_on_where_it_was_in_bounded_pieces_and_misses_none_when_files_turn_over() {
        let dir = tempfile::tempdir().unwrap();
        let events = Events::at(&dir.path().join("events"));
        let text = Value::from("x".repeat(64 << 10));
        let add = |count: usize| {
            for _ in 0..count {
                events.add(Offset(0), "sidecar", "note", text.clone()).unwrap();
            }
        };
        let rest = |reader: &mut EventReader, after: u64| -> Vec<u64> {
            let mut seqs = Vec::new();
            while let Some(piece) = events.read(after, reader).unwrap() {
                assert!(piece.len() <= 5, "{} events of 64 KiB at once", piece.len());
                seqs.extend(piece.iter().map(|event| event.seq));
            }
            seqs
        };
        add(3);
        let (mut slow, mut follower) = (EventReader::default(), events.reader_at_end().unwrap());
        assert_eq!(events.read(0, &mut slow).unwrap().unwrap().len(), 3);
        assert_eq!(rest(&mut follower, 3), [0; 0]);
        let mut last = 3;
        for _ in 0..5 {
            // More than a file holds, in five steps: twice it is turned over.
            add(130);
            assert_eq!(rest(&mut follower, last), (last + 1..=last + 130).collect::<Vec<_>>());
            last += 130;
        }
        let kept = rest(&mut slow, 3);
        assert_eq!(kept.last(), Some(&last));
        assert!(kept.len() > 250 && kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "{}", kept.len());
    }
}
