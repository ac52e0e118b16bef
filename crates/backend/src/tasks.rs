//! Owns the tasks that a backend spawns: closing the backend ends them.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long work that must not be left half done may go on once its backend closes.
const WORK_GRACE: Duration = Duration::from_secs(1);

/// The tasks of one backend. A clone is the same set.
///
/// A backend spawns here and nowhere else, and its [`close`](crate::Backend::close) closes this. The set can be used again
/// afterwards: a test opens a second engine on the backend of the first.
#[derive(Clone, Default)]
pub struct BackendTasks(Arc<Mutex<TaskSet>>);

/// The tasks since the last close.
#[derive(Clone, Default)]
struct TaskSet {
    tracker: TaskTracker,
    /// Drops the tasks that only watch or serve.
    closing: CancellationToken,
    /// Drops the rest.
    abort: CancellationToken,
}

impl BackendTasks {
    /// Spawns a task that watches or serves: `close` drops it at its next await.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let set = self.set().clone();
        Self::run(&set.tracker, set.closing, future)
    }

    /// Spawns work that leaves something half done when it is dropped: `close` gives it a second first.
    pub fn spawn_work(&self, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let set = self.set().clone();
        Self::run(&set.tracker, set.abort, future)
    }

    /// Ends the tasks, and waits until each of them is gone.
    pub async fn close(&self) {
        let TaskSet { tracker, closing, abort } = mem::take(&mut *self.set());
        tracker.close();
        closing.cancel();
        if tokio::time::timeout(WORK_GRACE, tracker.wait()).await.is_err() {
            abort.cancel();
            tracker.wait().await;
        }
    }

    fn run(
        tracker: &TaskTracker,
        end: CancellationToken,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        // Boxed: a future inside two others would be stored twice.
        let mut future = Box::pin(future);
        tracker.spawn(async move {
            end.run_until_cancelled(&mut future).await;
        })
    }

    fn set(&self) -> MutexGuard<'_, TaskSet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A future that never ends, and what shows whether it was dropped.
    fn endless() -> (impl Future<Output = ()> + Send + 'static, Arc<()>) {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let future = async move {
            std::future::pending::<()>().await;
            drop(held);
        };
        (future, alive)
    }

    #[tokio::test(start_paused = true)]
    async fn closing_drops_a_watcher_at_once_and_work_after_its_grace() {
        let tasks = BackendTasks::default();
        let ((watcher, watching), (work, working)) = (endless(), endless());
        tasks.spawn(watcher);
        tasks.spawn_work(work);
        let (closed, began) = (tasks.clone(), tokio::time::Instant::now());
        let closed = tokio::spawn(async move { closed.close().await });
        tokio::time::sleep(WORK_GRACE / 2).await;
        assert_eq!((Arc::strong_count(&watching), Arc::strong_count(&working)), (1, 2));
        closed.await.unwrap();
        assert_eq!(Arc::strong_count(&working), 1);
        assert_eq!(began.elapsed().as_secs(), WORK_GRACE.as_secs());
    }

    #[tokio::test]
    async fn a_closed_set_is_used_again() {
        let tasks = BackendTasks::default();
        tasks.close().await;
        let (done, told) = tokio::sync::oneshot::channel();
        tasks.spawn(async move { done.send(()).unwrap() });
        told.await.unwrap();
        let (future, alive) = endless();
        tasks.spawn(future);
        tasks.close().await;
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
