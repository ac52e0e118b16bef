//! Owns every task that the daemon spawns: it finishes changes whose asker has left, and ends with no task of its own.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_model::{Code, Failure};

use crate::refusal::Answer;

/// The daemon's tasks: connections, answers that come piece by piece, changes that are carried out. A change that was begun is
/// finished though its asker hangs up, and the daemon does not end before it, within its patience.
#[derive(Clone)]
pub(crate) struct Work {
    tasks: TaskTracker,
    /// The daemon is asked to end.
    stop: CancellationToken,
    /// What has not ended by then is dropped.
    abandon: CancellationToken,
}

impl Work {
    pub(crate) fn new() -> Self {
        let tasks = TaskTracker::new();
        // A closed tracker takes tasks all the same; it only lets others wait for the last.
        tasks.close();
        Self { tasks, stop: CancellationToken::new(), abandon: CancellationToken::new() }
    }

    /// Starts a task, which ends by itself once the daemon is asked to end, or is dropped when all has waited long enough.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let _owned_by_the_tracker = self.start(task);
    }

    fn start<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<Option<T>> {
        let abandon = self.abandon.clone();
        // What is large is moved once, and not with each hand that it goes through.
        let task = Box::pin(task);
        self.tasks.spawn(async move { abandon.run_until_cancelled(task).await })
    }

    /// Carries something out to its end, whatever becomes of the asker.
    pub(crate) async fn carry_out<T: Send + 'static>(
        &self,
        work: impl Future<Output = Answer<T>> + Send + 'static,
    ) -> Answer<T> {
        match self.start(work).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(ending().into()),
            Err(error) => {
                tracing::error!("a request failed by a fault: {error}");
                let message = "a fault of Wharf ended this request; the daemon and every session go on";
                Err(Failure::new(Code::Internal, message)
                    .hint("the daemon's log has the details: please report it")
                    .into())
            }
        }
    }

    /// Waits for something for as long as the daemon runs.
    pub(crate) async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.stopping() => Err(ending()),
        }
    }

    /// Asks the daemon to end.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns once the daemon has been asked to end.
    pub(crate) async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// Returns once no task is left, or after this long. Returns whether none is.
    pub(crate) async fn done(&self, within: Duration) -> bool {
        tokio::time::timeout(within, self.tasks.wait()).await.is_ok()
    }

    /// Drops every task that is left, and returns once all are gone.
    pub(crate) async fn abandon(&self) {
        self.abandon.cancel();
        self.tasks.wait().await;
    }

    /// How many tasks there are.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }
}

fn ending() -> Failure {
    Failure::new(Code::Unreachable, "the daemon is ending; the session goes on")
        .hint("ask again: the next command starts a new daemon")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a test waits for what should come at once.
    const DONE_TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_change_is_finished_though_its_asker_hangs_up() {
        let work = Work::new();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let (tell, told) = tokio::sync::oneshot::channel();
        let change = work.carry_out(async move {
            let _ = gone.await;
            let _ = tell.send("done");
            Ok(())
        });
        let mut change = Box::pin(change);
        std::future::poll_fn(|cx| {
            assert!(change.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(change);
        assert_eq!(work.len(), 1);
        go.send(()).unwrap();
        assert_eq!(told.await, Ok("done"));
        assert!(work.done(DONE_TIMEOUT).await);
    }

    #[tokio::test]
    async fn a_panic_is_one_requests_failure() {
        let work = Work::new();
        assert!(work.carry_out::<()>(async { panic!("on purpose") }).await.is_err());
        assert!(work.done(DONE_TIMEOUT).await);
        assert!(work.carry_out(async { Ok(1) }).await.is_ok());
    }

    #[tokio::test]
    async fn what_does_not_end_by_itself_is_dropped() {
        let work = Work::new();
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        work.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let never = work.clone();
        let change = tokio::spawn(async move { never.carry_out(std::future::pending::<Answer<()>>()).await });
        work.stop();
        assert!(!work.done(Duration::from_millis(10)).await);
        work.abandon().await;
        assert_eq!(work.len(), 0);
        assert!(dropped.await.is_err());
        assert!(change.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn waiting_ends_with_the_daemon() {
        let work = Work::new();
        assert_eq!(work.meanwhile(async { 7 }).await, Ok(7));
        work.stop();
        let failure = work.meanwhile(std::future::pending::<()>()).await.unwrap_err();
        assert_eq!(failure.code, Code::Unreachable);
    }
}
