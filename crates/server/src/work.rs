//! Finishes requests whose client has left, and lets the daemon wait for them.

use tokio::sync::watch;
use wharf_model::{Code, Failure};

use crate::refusal::Answer;

/// What is being carried out. A change that was begun is finished though its asker hangs up, and the daemon
/// does not end before it, within its patience.
#[derive(Clone)]
pub(crate) struct Work {
    count: watch::Sender<usize>,
    stop: watch::Sender<bool>,
}

impl Work {
    pub(crate) fn new() -> Self {
        Self { count: watch::Sender::new(0), stop: watch::Sender::new(false) }
    }

    /// Carries something out to its end, whatever becomes of the asker.
    pub(crate) async fn carry_out<T: Send + 'static>(
        &self,
        work: impl Future<Output = Answer<T>> + Send + 'static,
    ) -> Answer<T> {
        let count = Counted::new(self.count.clone());
        // What is large is moved once, and not with each hand that it goes through.
        let work = Box::pin(work);
        let task = tokio::spawn(async move {
            let _count = count;
            work.await
        });
        task.await.unwrap_or_else(|error| {
            tracing::error!("a request failed by a fault: {error}");
            let message = "a fault of Wharf ended this request; the daemon and every session go on";
            Err(Failure::new(Code::Internal, message)
                .hint("the daemon's log has the details: please report it")
                .into())
        })
    }

    /// Waits for something for as long as the daemon runs.
    pub(crate) async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.stopping() => Err(Failure::new(Code::Unreachable, "the daemon is ending; the session goes on")
                .hint("ask again: the next command starts a new daemon")),
        }
    }

    /// Asks the daemon to end.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Returns once the daemon has been asked to end.
    pub(crate) async fn stopping(&self) {
        // The sender lives in `self`, so this cannot fail.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Returns once nothing is being carried out.
    pub(crate) async fn done(&self) {
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// How much is being carried out.
    pub(crate) fn len(&self) -> usize {
        *self.count.borrow()
    }
}

/// One thing that is being carried out.
pub(crate) struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(count: watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        work.done().await;
    }

    #[tokio::test]
    async fn a_panic_is_one_requests_failure() {
        let work = Work::new();
        assert!(work.carry_out::<()>(async { panic!("on purpose") }).await.is_err());
        work.done().await;
        assert!(work.carry_out(async { Ok(1) }).await.is_ok());
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
