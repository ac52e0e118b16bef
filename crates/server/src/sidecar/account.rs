//! What one session may tell: how many connections, how many events and bytes in a second, how much at once.
//!
//! A session that floods waits for itself, and takes neither the daemon's time nor its memory from others. Nothing is
//! thrown away: whoever tells too fast is read more slowly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use wharf_model::SessionId;

/// How many connections one session may have.
const MAX_CONNECTIONS: usize = 64;
/// How many events a second a session may tell for long, and how many of them at once.
const EVENTS: Rate = Rate { per_second: 1_000.0, at_once: 4_000.0 };
/// The same of bytes.
const BYTES: Rate = Rate { per_second: (4 << 20) as f64, at_once: (32 << 20) as f64 };
/// How many long lines all sessions together may have in memory. One session has one.
const MAX_LONG_LINES: usize = 4;
/// How many accounts of sessions that tell nothing now are remembered.
const MAX_IDLE_ACCOUNTS: usize = 1_024;

struct Rate {
    per_second: f64,
    at_once: f64,
}

/// The accounts of all sessions.
pub(super) struct Accounts {
    /// By session; those who did not say yet to which they belong are one.
    sessions: Mutex<HashMap<Option<SessionId>, Account>>,
    long_lines: Arc<Semaphore>,
    /// Who reads a long line has some memory for it: one after the other.
    pub(super) reading: Semaphore,
}

struct Account {
    connections: usize,
    /// What may be told now. Below zero where too much was.
    events: f64,
    bytes: f64,
    as_of: Instant,
    long_line: Arc<Semaphore>,
}

/// A connection of a session.
pub(super) struct Seat {
    accounts: Arc<Accounts>,
    id: Option<SessionId>,
}

/// The right to hold a long line.
pub(super) struct Room(#[expect(dead_code, reason = "it is held")] [OwnedSemaphorePermit; 2]);

impl Accounts {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            sessions: Mutex::default(),
            long_lines: Arc::new(Semaphore::new(MAX_LONG_LINES)),
            reading: Semaphore::new(1),
        })
    }

    /// A connection of somebody who did not say yet to which session he belongs.
    pub(super) fn nobody(self: &Arc<Self>) -> Seat {
        self.lock().entry(None).or_insert_with(Account::new).connections += 1;
        Seat { accounts: Arc::clone(self), id: None }
    }

    /// A connection for a session; none where it has too many.
    pub(super) fn seat(self: &Arc<Self>, id: &SessionId) -> Option<Seat> {
        let id = Some(id.clone());
        let mut sessions = self.lock();
        if sessions.len() > MAX_IDLE_ACCOUNTS {
            sessions.retain(|_, account| account.connections > 0 || !account.is_full());
        }
        let account = sessions.entry(id.clone()).or_insert_with(Account::new);
        if account.connections == MAX_CONNECTIONS {
            return None;
        }
        account.connections += 1;
        Some(Seat { accounts: Arc::clone(self), id })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<SessionId>, Account>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn new() -> Self {
        Self {
            connections: 0,
            events: EVENTS.at_once,
            bytes: BYTES.at_once,
            as_of: Instant::now(),
            long_line: Arc::new(Semaphore::new(1)),
        }
    }

    fn fill(&mut self) {
        let passed = self.as_of.elapsed().as_secs_f64();
        self.as_of = Instant::now();
        self.events = (self.events + passed * EVENTS.per_second).min(EVENTS.at_once);
        self.bytes = (self.bytes + passed * BYTES.per_second).min(BYTES.at_once);
    }

    fn is_full(&mut self) -> bool {
        self.fill();
        self.events >= EVENTS.at_once && self.bytes >= BYTES.at_once
    }

    /// Takes what was told off, and says how long to wait until there is something again.
    fn charge(&mut self, bytes: usize) -> Duration {
        self.fill();
        self.events -= 1.0;
        self.bytes -= bytes as f64;
        let wait = (-self.events / EVENTS.per_second).max(-self.bytes / BYTES.per_second);
        Duration::from_secs_f64(wait.max(0.0))
    }
}

impl Seat {
    /// The session, once it is known.
    pub(super) fn id(&self) -> Option<&SessionId> {
        self.id.as_ref()
    }

    /// Takes a line of this many bytes off what the session may tell, and waits where that was too much.
    pub(super) async fn charge(&self, bytes: usize) {
        let wait = self.accounts.lock().get_mut(&self.id).map_or(Duration::ZERO, |a| a.charge(bytes));
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Waits for room for a long line: for the session's own one first, so that it takes nobody else's.
    pub(super) async fn room(&self) -> Option<Room> {
        let own = Arc::clone(&self.accounts.lock().get(&self.id)?.long_line);
        let own = own.acquire_owned().await.ok()?;
        Some(Room([own, Arc::clone(&self.accounts.long_lines).acquire_owned().await.ok()?]))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(account) = self.accounts.lock().get_mut(&self.id) {
            account.connections = account.connections.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> SessionId {
        SessionId::new(wharf_model::Millis(number), 1)
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_tells_too_fast_waits_and_another_does_not() {
        let accounts = Accounts::new();
        let (fast, other) = (accounts.seat(&id(1)).unwrap(), accounts.seat(&id(2)).unwrap());
        let begun = Instant::now();
        for _ in 0..4_000 {
            fast.charge(100).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "so many at once are usual");
        for _ in 0..1_000 {
            fast.charge(100).await;
        }
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(900) && took < Duration::from_secs(3), "{took:?}");
        // To come again makes no difference.
        drop(fast);
        let fast = accounts.seat(&id(1)).unwrap();
        let begun = Instant::now();
        fast.charge(64 << 20).await;
        assert!(begun.elapsed() > Duration::from_secs(7), "{:?}", begun.elapsed());
        let begun = Instant::now();
        other.charge(100).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_session_has_so_many_connections_and_one_long_line() {
        let accounts = Accounts::new();
        let mut seats: Vec<Seat> = (0..MAX_CONNECTIONS).map(|_| accounts.seat(&id(1)).unwrap()).collect();
        assert!(accounts.seat(&id(1)).is_none());
        assert!(accounts.seat(&id(2)).is_some());
        seats.pop();
        assert!(accounts.seat(&id(1)).is_some());
        let room = seats[0].room().await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), seats[1].room()).await.is_err());
        assert!(accounts.seat(&id(2)).unwrap().room().await.is_some());
        drop(room);
        assert!(seats[1].room().await.is_some());
    }
}
