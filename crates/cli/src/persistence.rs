//! Asks until there is an answer: a daemon that dies meanwhile is replaced, and asked the same.

use std::time::{Duration, Instant};

use wharf_api::{Client, daemon};
use wharf_model::{Code, Failure, Home};

/// A daemon that fails at once, again and again, is not asked in a storm.
const PAUSE: Duration = Duration::from_millis(100);
/// How often in a row it may fail at once.
const TRIES: u32 = 20;

/// Somebody who does not give up before the time is up.
pub(crate) struct Persistent {
    home: Home,
    client: Client,
    deadline: Option<Instant>,
}

impl Persistent {
    /// With a daemon, which is started where none answers. No timeout is for ever.
    pub(crate) async fn new(home: Home, timeout: Option<Duration>) -> Result<Self, Failure> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let client = daemon::ensure(&home).await?;
        Ok(Self { home, client, deadline })
    }

    /// Asks what may be asked twice. The work is told how much time is left.
    pub(crate) async fn ask<T>(
        &mut self,
        work: impl AsyncFn(&Client, Option<Duration>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut quick = 0;
        loop {
            let asked = Instant::now();
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(asked));
            match work(&self.client, left).await {
                Err(failure) if matches!(failure.code, Code::Unreachable | Code::Unavailable) => {
                    quick = if asked.elapsed() < PAUSE { quick + 1 } else { 0 };
                    let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    if late || quick >= TRIES {
                        return Err(failure);
                    }
                    if quick > 0 {
                        tokio::time::sleep(PAUSE).await;
                    }
                    self.client = daemon::ensure(&self.home).await?;
                }
                answer => return answer,
            }
        }
    }
}
