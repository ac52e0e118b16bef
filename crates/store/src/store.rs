//! Opens the store, answers queries, and puts a bad file aside.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension};
use wharf_boundary::{Dir, is_hostile};
use wharf_model::{Millis, SessionId};

use crate::row::COLUMNS;
use crate::writer::{Change, Mailbox, Writer};
use crate::{SessionRow, StoreError, schema};

/// What was found at opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// The store was there.
    Ready,
    /// There was none; a new one was made.
    Fresh,
    /// There was one that cannot be read. It was kept, and a new one was made.
    Replaced {
        /// Where the old file is now.
        aside: PathBuf,
        /// Why it cannot be read.
        why: String,
    },
}

/// The store. A clone is the same store; it is closed with the last one.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    mailbox: Arc<Mailbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens the store at `path`, or makes one. A file that cannot be read is renamed, never overwritten; so is whatever
    /// stands in the place of the file and is none. The directory is the caller's alone.
    pub fn open(path: &Path) -> Result<(Self, Opened), StoreError> {
        let there = fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
        let (connection, opened) = match attempt(path) {
            Ok(connection) => (connection, if there { Opened::Ready } else { Opened::Fresh }),
            Err(error) if error.is_bad_file() => {
                let aside = put_aside(path)?;
                (attempt(path)?, Opened::Replaced { aside, why: error.to_string() })
            }
            Err(error) => return Err(error),
        };
        let mailbox = Arc::<Mailbox>::default();
        let writer = Writer { path: path.to_owned(), connection, mailbox: Arc::clone(&mailbox) };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || writer.run())
            .map_err(|error| StoreError::File { path: path.to_owned(), error })?;
        Ok((Self { inner: Arc::new(Inner { mailbox, thread: Mutex::new(Some(thread)) }) }, opened))
    }

    /// Queues a session to be written. Never waits.
    pub fn put(&self, row: SessionRow) {
        self.inner.mailbox.change(row.id.clone(), Change::Put(Box::new(row)));
    }

    /// Queues a session to be forgotten. Never waits.
    pub fn remove(&self, id: &SessionId) {
        self.inner.mailbox.change(id.clone(), Change::Remove);
    }

    /// Waits until everything that was queued was written, or tried once and kept for later.
    pub fn flush(&self, within: Duration) {
        let (sender, receiver) = mpsc::channel();
        self.inner.mailbox.lock().flushes.push(sender);
        self.inner.mailbox.wake();
        // The sender is dropped when it is done: that is the answer.
        let _ = receiver.recv_timeout(within);
    }

    /// The ids of every session that is over.
    pub fn over(&self) -> Result<Vec<SessionId>, StoreError> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT id FROM sessions WHERE over = 1")?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            rows.filter_map(|id| id.map(|id| id.parse().ok()).transpose()).collect()
        })
    }

    /// Every session that was not over when it was last written.
    pub fn live(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(|connection| {
            let mut statement =
                connection.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE over = 0"))?;
            statement.query_map([], SessionRow::read)?.collect()
        })
    }

    /// The sessions that ended last, the newest first.
    pub fn newest_over(&self, most: u32) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM sessions WHERE over = 1 ORDER BY ended DESC, id DESC LIMIT ?1"
            );
            connection.prepare_cached(&sql)?.query_map([most], SessionRow::read)?.collect()
        })
    }

    /// The sessions that ended before a moment, the oldest first.
    pub fn over_before(&self, moment: Millis, most: u32) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM sessions WHERE over = 1 AND ended < ?1 ORDER BY ended, id LIMIT ?2"
            );
            let moment = i64::try_from(moment.0).unwrap_or(i64::MAX);
            connection.prepare_cached(&sql)?.query_map((moment, most), SessionRow::read)?.collect()
        })
    }

    /// One session by its id.
    pub fn by_id(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        let id = id.clone();
        self.ask(move |connection| {
            let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1");
            connection.prepare_cached(&sql)?.query_row([id.as_str()], SessionRow::read).optional()
        })
    }

    /// The newest session of a name.
    pub fn by_name(&self, name: &str) -> Result<Option<SessionRow>, StoreError> {
        let name = name.to_owned();
        self.ask(move |connection| {
            let sql = format!("SELECT {COLUMNS} FROM sessions WHERE name = ?1 ORDER BY created DESC LIMIT 1");
            connection.prepare_cached(&sql)?.query_row([name], SessionRow::read).optional()
        })
    }

    /// Sessions whose id starts with `prefix`, two at most: one is an answer, two are a question.
    pub fn by_prefix(&self, prefix: &str) -> Result<Vec<SessionRow>, StoreError> {
        // Ids have no character after `z`, so this range is exactly the prefix.
        let range = (prefix.to_owned(), format!("{prefix}{{"));
        self.ask(move |connection| {
            let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id >= ?1 AND id < ?2 LIMIT 2");
            connection.prepare_cached(&sql)?.query_map(range, SessionRow::read)?.collect()
        })
    }

    /// Asks the thread that owns the database; the answer counts everything that was queued before.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        {
            let mut queue = self.inner.mailbox.lock();
            if queue.closed {
                return Err(StoreError::Closed);
            }
            queue.questions.push(Box::new(move |connection| {
                // An asker that went away wants no answer.
                let _ = sender.send(question(connection));
            }));
        }
        self.inner.mailbox.wake();
        receiver.recv().map_err(|_| StoreError::Closed)?.map_err(StoreError::from)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.mailbox.lock().closed = true;
        self.mailbox.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there was reported by the panic hook; there is nothing left to save.
            let _ = thread.join();
        }
    }
}

fn attempt(path: &Path) -> Result<Connection, StoreError> {
    let named = |error| StoreError::File { path: path.to_owned(), error };
    check_files(path).map_err(|error| match error {
        error if is_hostile(&error) => StoreError::NoFile(error),
        error => named(error),
    })?;
    let connection = schema::open(path)?;
    // A file with holes opens well; reading the index that every start needs finds most of them.
    connection.query_row("SELECT count(*), max(ended) FROM sessions WHERE over = 0", [], |_| Ok(()))?;
    connection.query_row("SELECT count(id) FROM sessions WHERE over = 1", [], |_| Ok(()))?;
    connection
        .query_row(&format!("SELECT {COLUMNS} FROM sessions LIMIT 1"), [], SessionRow::read)
        .optional()?;
    Ok(connection)
}

/// Looks that the database and what SQLite keeps beside it are files of ours, and makes the first. SQLite opens by paths,
/// in a directory where nobody else changes names.
fn check_files(path: &Path) -> std::io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let dir = Dir::open(dir)?;
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = format!("{name}{suffix}");
        if dir.kind(&beside)?.is_some() {
            dir.open_or_make_file(&beside, 0o600)?;
        }
    }
    // Made by us first, so that it is private whatever the umask says; SQLite gives its other files the same mode.
    dir.open_or_make_file(name, 0o600).map(drop)
}

/// Renames a bad file and what belongs to it.
pub(crate) fn put_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let now = Millis::from(SystemTime::now()).0;
    let beside = |from: &Path, suffix: &str| {
        let mut name = from.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let named = |stamp: u64| beside(path, &format!(".bad-{stamp}"));
    let mut stamp = now;
    while fs::symlink_metadata(named(stamp)).is_ok() {
        stamp += 1;
    }
    let aside = named(stamp);
    match fs::rename(path, &aside) {
        // What belongs to it is bad.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        renamed => renamed.map_err(|error| StoreError::File { path: path.to_owned(), error })?,
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        // Most often there are none.
        let _ = fs::rename(beside(path, suffix), beside(&aside, suffix));
    }
    Ok(aside)
}
