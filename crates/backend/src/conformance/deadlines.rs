//! Waits for conditions with a deadline, and says what did not come in time.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// How long a case waits for what must come: long, because a busy machine is no fault of the backend.
pub const CASE_TIMEOUT: Duration = Duration::from_secs(20);

/// How soon a backend must answer whatever the session does.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits for something that must come in time.
///
/// # Panics
/// Where it does not.
pub async fn within<T>(time: Duration, what: &str, future: impl Future<Output = T>) -> T {
    timeout(time, future).await.unwrap_or_else(|_late| panic!("{what}: not within {time:?}"))
}

/// Waits until a condition holds that nothing announces.
///
/// # Panics
/// Where it does not hold after [`CASE_TIMEOUT`].
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + CASE_TIMEOUT;
    let mut pause = Duration::from_millis(1);
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}: not within {CASE_TIMEOUT:?}");
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
