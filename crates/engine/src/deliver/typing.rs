//! Types text and keys into a session, and waits until the application has read them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use wharf_backend::{Connection, Pending};
use wharf_model::{Code, Failure, key_bytes};

use crate::Result;
use crate::instance::shared::Shared;
use crate::observe::observed::Observed;
use crate::observe::seen::{Seen, Sight};
use crate::session::handle::Handle;

/// How long a key or a piece of text may take to be in the terminal.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two keys of one press: some programs take faster ones for a paste, and all take Escape with another key right
/// behind it for one key.
const KEY_PAUSE: Duration = Duration::from_millis(120);
/// How long an application may leave input unread before it counts as deaf.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How often unread input is asked for.
const UNREAD_POLL_BACKOFF: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(40));

/// Looks at a session and types into it.
pub(crate) struct Typist {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Arc<Handle>,
    pub(crate) observed: Arc<Observed>,
    /// Keeps the observer awake.
    sight: watch::Receiver<Sight>,
}

impl Typist {
    pub(crate) fn new(shared: &Arc<Shared>, handle: &Arc<Handle>, observed: &Arc<Observed>) -> Self {
        Self {
            sight: observed.follow(shared, handle),
            shared: Arc::clone(shared),
            handle: Arc::clone(handle),
            observed: Arc::clone(observed),
        }
    }

    /// What is seen now; waits for a first sight.
    pub(crate) async fn look(&mut self) -> Result<Arc<Seen>> {
        let patience = self.shared.timeouts.call;
        let first = Instant::now() + patience;
        let mut sight = self.sight.clone();
        let seen = tokio::select! {
            seen = self.until(first, |_| true) => seen?,
            // `observed` holds the sender, so it lives.
            _ = sight.wait_for(Sight::is_unreadable) => None,
        };
        seen.ok_or_else(|| {
            let name = self.handle.session().name.clone();
            Failure::new(Code::Unreachable, format!("the screen of session {name} could not be read"))
                .hint("`wharf doctor` looks for the cause")
        })
    }

    /// Waits until what is seen satisfies a condition. Nothing where it does not in time; an error where the session is over.
    pub(crate) async fn until(
        &mut self,
        deadline: Instant,
        met: impl Fn(&Seen) -> bool,
    ) -> Result<Option<Arc<Seen>>> {
        let mut changes = self.handle.watch();
        let shared = Arc::clone(&self.shared);
        let closed = shared.closed();
        tokio::pin!(closed);
        loop {
            let seen = self.sight.borrow_and_update().seen().cloned();
            if let Some(seen) = seen.filter(|seen| met(seen)) {
                return Ok(Some(seen));
            }
            self.alive()?;
            tokio::select! {
                changed = self.sight.changed() => {
                    if changed.is_err() {
                        return Ok(None);
                    }
                }
                _ = changes.changed() => {}
                () = &mut closed => return Err(closing()),
                () = tokio::time::sleep_until(deadline.into()) => return Ok(None),
                // Some conditions come true by the mere passing of time.
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    }

    fn alive(&self) -> Result<()> {
        let session = self.handle.session();
        if session.state.is_over() {
            return Err(Failure::new(Code::Ended, format!("session {} has ended", session.name))
                .hint(format!("`wharf logs {}` shows its last output", session.name)));
        }
        if self.shared.is_closing() {
            return Err(closing());
        }
        Ok(())
    }

    /// Waits until the screen has been still for a while, at most until the deadline.
    pub(crate) async fn still(&mut self, quiet: Duration, deadline: Instant) -> Result<Option<Arc<Seen>>> {
        self.until(deadline, |seen| seen.still.elapsed() >= quiet).await
    }

    /// The way to the terminal; waits for one that is just being found again.
    pub(crate) async fn connection(&self) -> Result<Arc<dyn Connection>> {
        let deadline = Instant::now() + self.shared.timeouts.call;
        let mut changes = self.handle.watch();
        loop {
            if let Some(connection) = self.handle.links().connection.clone() {
                return Ok(connection);
            }
            self.alive()?;
            if tokio::time::timeout_at(deadline.into(), changes.changed()).await.is_err() {
                let name = self.handle.session().name.clone();
                return Err(Failure::new(Code::Unreachable, format!("session {name} cannot be reached now")));
            }
        }
    }

    /// Types bytes. They are in the terminal when this returns.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<()> {
        let within = WRITE_TIMEOUT + Duration::from_millis(bytes.len() as u64 / 8);
        let written = self.connection().await?.write(bytes, within).await;
        self.observed.note_own_input();
        written
    }

    /// Presses keys one after the other, each once the one before has been read: read together, an Escape and what
    /// follows it are another key.
    pub(crate) async fn press(&self, keys: &[String]) -> Result<()> {
        for (index, key) in keys.iter().enumerate() {
            if index > 0 {
                self.read().await?;
                tokio::time::sleep(KEY_PAUSE).await;
            }
            self.write(&bytes_of(key)?).await?;
        }
        Ok(())
    }

    /// What the application has not read yet; nothing where the backend cannot tell.
    pub(crate) async fn pending(&self) -> Result<Option<Pending>> {
        match self.connection().await?.pending().await {
            Ok(pending) => Ok(Some(pending)),
            Err(failure) if failure.code == Code::Unsupported => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Waits until the application has read everything. False where it stops reading, or where that cannot be told.
    pub(crate) async fn read(&self) -> Result<bool> {
        let (mut least, mut moved, mut pause) = (u64::MAX, Instant::now(), UNREAD_POLL_BACKOFF.0);
        loop {
            let Some(pending) = self.pending().await? else { return Ok(false) };
            let left = pending.queued + pending.unread;
            if left == 0 {
                return Ok(true);
            }
            if left < least {
                (least, moved) = (left, Instant::now());
            } else if moved.elapsed() > UNREAD_TIMEOUT {
                return Ok(false);
            }
            self.alive()?;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(UNREAD_POLL_BACKOFF.1);
        }
    }
}

/// The bytes of a key.
pub(crate) fn bytes_of(key: &str) -> Result<Vec<u8>> {
    key_bytes(key).map_err(|error| Failure::new(Code::Invalid, error.to_string()))
}

fn closing() -> Failure {
    Failure::new(Code::Unreachable, "the engine is closing; the session goes on")
}
