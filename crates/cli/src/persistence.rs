//! Asks until there is an answer: a daemon that dies meanwhile is replaced, and asked the same.

use std::time::{Duration, Instant};

use wharf_api::{Client, daemon};
use wharf_model::{Code, Failure, Home};

/// A daemon that fails at once, again and again, is not asked in a storm.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How often in a row it may fail at once.
const MAX_TRIES: u32 = 20;
/// How much longer than the time that is left an answer may take: a daemon that says that the time is up is heard.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// Somebody who does not give up before the time is up.
pub(crate) struct Persistent {
    home: Home,
    client: Option<Client>,
    deadline: Option<Instant>,
}

impl Persistent {
    /// Nobody is asked yet. No timeout is for ever.
    pub(crate) fn new(home: Home, timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { home, client: None, deadline }
    }

    /// Asks what may be asked twice. The work is told how much time is left.
    pub(crate) async fn ask<T>(
        &mut self,
        work: impl AsyncFn(&Client, Option<Duration>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut quick = 0;
        loop {
            let asked = Instant::now();
            let failure = match self.once(&work).await {
                Err(failure) if matches!(failure.code, Code::Unreachable | Code::Unavailable) => failure,
                answer => return answer,
            };
            // The next one is asked of whoever answers then.
            self.client = None;
            quick = if asked.elapsed() < RETRY_PAUSE { quick + 1 } else { 0 };
            let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if late || quick >= MAX_TRIES {
                return Err(failure);
            }
            tokio::time::sleep(RETRY_PAUSE.saturating_sub(asked.elapsed())).await;
        }
    }

    async fn once<T>(
        &mut self,
        work: impl AsyncFn(&Client, Option<Duration>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = match &self.client {
            Some(client) => client,
            None => self.client.insert(daemon::ensure(&self.home).await?),
        };
        let Some(deadline) = self.deadline else { return work(client, None).await };
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = tokio::time::timeout(left.saturating_add(ANSWER_MARGIN), work(client, Some(left))).await;
        answer.unwrap_or_else(|_| {
            Err(Failure::new(Code::Timeout, "the daemon did not answer in time")
                .hint("it is stopped or overloaded: `wharf daemon status` and its log say more"))
        })
    }
}
