//! Owns every task of an engine: what is spawned here has ended once the engine is closed.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TrackedFuture;

/// How long a helper may go on once the engine closes. A message that is being typed gets this long to end well; what it could
/// not finish is on disk as an intent, and the next engine goes on from there.
const HELPER_GRACE: Duration = Duration::from_secs(1);
/// How long tasks may take to be dropped once they are aborted: each does so at its next await.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// The tasks of one engine. A clone is the same set.
///
/// No other place of the crate spawns, except the claim in `open`, which runs before there is an engine.
///
/// Closing goes in three steps. Every task is asked to leave; helpers that did not are dropped after a second; whatever is
/// left is dropped at the deadline. A blocking call cannot be dropped: `close` waits for it until the deadline, and then
/// names it in the log.
#[derive(Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    /// Cancelled when the engine begins to close: every task leaves by itself then.
    closing: CancellationToken,
    /// Cancelled when that took too long: what is left is dropped where it is.
    abort: CancellationToken,
}

impl Tasks {
    /// Spawns a task that leaves by itself when the engine closes. One that does not is dropped at the deadline of `close`.
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let abort = self.abort.clone();
        // Boxed: a future inside two others would be stored twice.
        let mut future = Box::pin(future);
        self.tracker.spawn(async move { abort.run_until_cancelled(&mut future).await })
    }

    /// Spawns a task that nobody has to wait for when the engine closes: it is dropped a second after that.
    pub(crate) fn spawn_helper<F>(&self, future: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let (closing, abort) = (self.closing.clone(), self.abort.clone());
        let mut future = Box::pin(future);
        self.tracker.spawn(async move {
            let grace = async {
                closing.cancelled().await;
                tokio::time::sleep(HELPER_GRACE).await;
            };
            tokio::select! {
                biased;
                output = &mut future => Some(output),
                () = grace => None,
                () = abort.cancelled() => None,
            }
        })
    }

    /// Runs what blocks on a thread of its own.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn_blocking(work)
    }

    /// Counts a future among the tasks whose owner is a `JoinSet`: dropping the set ends it, and `close` waits for that.
    pub(crate) fn track<F: Future>(&self, future: F) -> TrackedFuture<F> {
        self.tracker.track_future(future)
    }

    /// Whether the engine is closing.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Resolves when the engine begins to close.
    pub(crate) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Asks every task to leave, and waits for none of them.
    pub(crate) fn ask_to_leave(&self) {
        self.closing.cancel();
        self.tracker.close();
    }

    /// Asks every task to leave, waits until none is left, and drops those that are there after `within`.
    pub(crate) async fn close(&self, within: Duration) {
        self.ask_to_leave();
        if tokio::time::timeout(within, self.tracker.wait()).await.is_ok() {
            return;
        }
        tracing::warn!(left = self.tracker.len(), "tasks did not end in time, and are dropped");
        self.abort.cancel();
        if tokio::time::timeout(ABORT_TIMEOUT, self.tracker.wait()).await.is_err() {
            tracing::warn!(left = self.tracker.len(), "calls that block go on after the engine's end");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_leave_is_dropped_a_helper_first() {
        let (tasks, task, helper) = (Tasks::default(), Arc::new(()), Arc::new(()));
        let stuck = |spy: &Arc<()>| {
            let spy = Arc::clone(spy);
            async move {
                std::future::pending::<()>().await;
                drop(spy);
            }
        };
        tasks.spawn(stuck(&task));
        tasks.spawn_helper(stuck(&helper));
        let (closed, began) = (tasks.clone(), tokio::time::Instant::now());
        let closed = tokio::spawn(async move { closed.close(Duration::from_secs(10)).await });
        tokio::time::sleep(HELPER_GRACE + Duration::from_millis(1)).await;
        assert_eq!((Arc::strong_count(&helper), Arc::strong_count(&task)), (1, 2));
        closed.await.unwrap();
        assert_eq!(Arc::strong_count(&task), 1);
        assert!(tasks.tracker.is_empty());
        assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_blocking_call_is_waited_for() {
        let (tasks, spy) = (Tasks::default(), Arc::new(()));
        let held = Arc::clone(&spy);
        tasks.spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        tasks.close(Duration::from_secs(10)).await;
        assert_eq!(Arc::strong_count(&spy), 1);
    }
}
