//! Asks the daemon, and starts one where none answers.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use wharf_api::{Client, daemon, direct};
use wharf_model::{Code, Failure};

use crate::place;

/// How often a question is put again when the daemon dies before it answers.
const MAX_TRIES: u32 = 3;

/// Asks a daemon that runs, without a runtime, which would cost as much as the question; none where none runs.
pub(crate) fn directly(
    target: &str,
    body: Option<&[u8]>,
    within: Duration,
) -> Result<Option<Vec<u8>>, Failure> {
    direct::ask(&place::home()?.socket(), target, body, within)
}

/// Asks once: for what must not happen twice.
pub(crate) fn once<T>(work: impl AsyncFnOnce(Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let home = place::home()?;
    runtime()?.block_on(async { work(daemon::ensure(&home).await?).await })
}

/// Asks, and asks a new daemon where the first one went away: for questions and for what may be repeated.
pub(crate) fn again<T>(work: impl AsyncFn(Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let home = place::home()?;
    runtime()?.block_on(async {
        let mut tries = 1;
        loop {
            match work(daemon::ensure(&home).await?).await {
                // It died before it answered, or between being found and being asked.
                Err(failure)
                    if matches!(failure.code, Code::Unreachable | Code::Unavailable) && tries < MAX_TRIES =>
                {
                    tries += 1;
                }
                answer => return answer,
            }
        }
    })
}

/// A runtime on this thread: starting more would cost more than most verbs do.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Failure::system("cannot start", &error))
}
