//! Bounds how many commands whose callers are gone are ended at once, and how many wait for that.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// How many are ended at once: callers may be killed faster than an engine answers.
const MAX_AT_ONCE: usize = 8;
/// How many there may be, with those that wait. Further ones run on.
const MAX_RECALLS: usize = 256;
/// How long one may wait for its turn, where an engine is silent.
const TURN_TIMEOUT: Duration = Duration::from_secs(120);

/// The recalls of one engine.
pub(crate) struct Recalls {
    places: Arc<Semaphore>,
    turns: Semaphore,
}

impl Recalls {
    pub(super) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_RECALLS)), turns: Semaphore::new(MAX_AT_ONCE) }
    }

    /// A place among those that wait or are under way; none where there are too many.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits for a turn; none where it takes too long.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        tokio::time::timeout(TURN_TIMEOUT, self.turns.acquire()).await.ok()?.ok()
    }
}
