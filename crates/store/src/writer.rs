//! Runs the thread that owns the database: batches changes and retries failed writes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use wharf_model::SessionId;

use crate::{SessionRow, StoreError, schema, store};

/// The most sessions that wait to be written. Past it the oldest are dropped: their directories are the truth,
/// and the next opening finds them there.
const MAX_PENDING: usize = 65_536;
/// The first and the longest wait before a failed write is tried again.
const RETRY_BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// How long changes gather before they are written together: a start does not share its processor with us.
const BATCH_DELAY: Duration = Duration::from_millis(200);

/// A question that is answered after everything that was queued before it.
pub(crate) type Question = Box<dyn FnOnce(&Connection) + Send>;

/// What is to be done to one session's row. A later change replaces an earlier one that was not written yet.
pub(crate) enum Change {
    Put(Box<SessionRow>),
    Remove,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) changes: BTreeMap<SessionId, Change>,
    pub(crate) questions: Vec<Question>,
    pub(crate) flushes: Vec<std::sync::mpsc::Sender<()>>,
    pub(crate) closed: bool,
    dropped: bool,
    /// When the oldest change that is not written came.
    since: Option<Instant>,
    /// Whether something is to be removed, which does not wait for others.
    removed: bool,
}

/// The queue between the handles and the thread.
#[derive(Default)]
pub(crate) struct Mailbox {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

impl Mailbox {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, id: SessionId, change: Change) {
        let mut queue = self.lock();
        if queue.changes.len() >= MAX_PENDING && !queue.changes.contains_key(&id) {
            queue.changes.pop_first();
            if !std::mem::replace(&mut queue.dropped, true) {
                tracing::error!("the store is far behind: the oldest changes are left to the next start");
            }
        }
        // What was removed must not be found again, should we be killed: nobody would know of its end.
        let removed = matches!(change, Change::Remove) && !std::mem::replace(&mut queue.removed, true);
        queue.changes.insert(id, change);
        if queue.since.is_none() || removed {
            queue.since.get_or_insert_with(Instant::now);
            self.arrived.notify_one();
        }
    }

    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }
}

/// Owns the database; runs on its own thread until the store is closed.
pub(crate) struct Writer {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Writer {
    pub(crate) fn run(mut self) {
        let mut retry: Option<(Instant, Duration)> = None;
        loop {
            let mut queue = self.mailbox.lock();
            loop {
                let gathered =
                    queue.since.map(|since| if queue.removed { since } else { since + BATCH_DELAY });
                let at = retry.map(|(at, _)| at).or(gathered);
                let due = at.is_none_or(|at| Instant::now() >= at);
                let urgent = !queue.questions.is_empty() || !queue.flushes.is_empty() || queue.closed;
                if urgent || (due && !queue.changes.is_empty()) {
                    break;
                }
                let wait = at.map_or(Duration::from_secs(3_600), |at| at - Instant::now().min(at));
                let wait = wait.max(Duration::from_millis(1));
                queue =
                    self.mailbox.arrived.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
            (queue.since, queue.removed) = (None, false);
            let changes = std::mem::take(&mut queue.changes);
            let questions = std::mem::take(&mut queue.questions);
            let flushes = std::mem::take(&mut queue.flushes);
            let closed = queue.closed;
            drop(queue);

            retry = match self.write(&changes) {
                Ok(()) => None,
                Err(error) => Some(self.failed(&error, changes, retry)),
            };
            for question in questions {
                question(&self.connection);
            }
            drop(flushes);
            if closed {
                return;
            }
        }
    }

    fn write(&mut self, changes: &BTreeMap<SessionId, Change>) -> rusqlite::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let transaction = self.connection.transaction()?;
        for (id, change) in changes {
            match change {
                Change::Put(row) => row.write(&transaction)?,
                Change::Remove => {
                    transaction
                        .prepare_cached("DELETE FROM sessions WHERE id = ?1")?
                        .execute([id.as_str()])?;
                }
            }
        }
        transaction.commit()
    }

    /// Puts the changes back, unless newer ones came meanwhile, and says when to try again.
    fn failed(
        &mut self,
        error: &rusqlite::Error,
        changes: BTreeMap<SessionId, Change>,
        retry: Option<(Instant, Duration)>,
    ) -> (Instant, Duration) {
        let wait = retry.map_or(RETRY_BACKOFF.0, |(_, wait)| (wait * 2).min(RETRY_BACKOFF.1));
        tracing::warn!(%error, ?wait, "the store could not be written; it is tried again");
        let mut queue = self.mailbox.lock();
        for (id, change) in changes {
            queue.changes.entry(id).or_insert(change);
        }
        drop(queue);
        if matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
        ) {
            self.replace();
        }
        (Instant::now() + wait, wait)
    }

    /// The file went bad under our hands: it is kept aside, and writing goes on in a new one.
    fn replace(&mut self) {
        let fresh = (|| -> Result<Connection, StoreError> {
            // The old descriptors stay with the file that is put aside.
            self.connection = Connection::open_in_memory()?;
            store::put_aside(&self.path)?;
            schema::open(&self.path)
        })();
        match fresh {
            Ok(connection) => self.connection = connection,
            Err(error) => tracing::error!(%error, "no new store could be made; the history is not kept"),
        }
    }
}
