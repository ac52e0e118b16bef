//! Holds the way to a task of a session that comes and goes, and what each such task leaves to the next.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// How many requests may wait for one task. A sender past it waits.
const MAX_QUEUED_REQUESTS: usize = 32;
/// How often a request to a task that is just ending is sent again.
const MAX_SEND_TRIES: usize = 8;

/// A task that comes and goes: the requests `R` that it takes, and the state `S` that it alone has.
///
/// There is at most one that works. The next one begins with what the last one left, once that has ended; where it failed,
/// with nothing. The lock is held for a few steps, never across an await.
pub(crate) struct Worker<R, S>(Mutex<Option<Way<R, S>>>);

/// The way to a task that works, or that was the last to work.
struct Way<R, S> {
    requests: mpsc::Sender<R>,
    left: oneshot::Receiver<S>,
}

/// What a task begins with.
pub(crate) struct Begin<R, S> {
    pub(crate) requests: mpsc::Receiver<R>,
    /// What the task before this one leaves, once it has ended.
    before: Option<oneshot::Receiver<S>>,
    leave: oneshot::Sender<S>,
}

/// Takes what a task leaves to the next.
pub(crate) struct Leave<S>(oneshot::Sender<S>);

impl<S> Leave<S> {
    pub(crate) fn hand_over(self, state: S) {
        // Nobody may ever need it.
        let _ = self.0.send(state);
    }
}

impl<R, S> Begin<R, S> {
    /// Waits until the task before has ended. Returns what that left, where there is anything.
    pub(crate) async fn begin(self) -> (mpsc::Receiver<R>, Option<S>, Leave<S>) {
        let left = match self.before {
            Some(before) => before.await.ok(),
            None => None,
        };
        (self.requests, left, Leave(self.leave))
    }
}

impl<R, S> Worker<R, S> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Has a task begin where none works. Returns the way to it.
    pub(crate) fn ensure(&self, spawn: impl FnOnce(Begin<R, S>)) -> mpsc::Sender<R> {
        let mut way = self.way();
        if let Some(known) = way.as_ref().filter(|way| !way.requests.is_closed()) {
            return known.requests.clone();
        }
        let (sender, requests) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let (leave, left) = oneshot::channel();
        let before = way.replace(Way { requests: sender.clone(), left }).map(|way| way.left);
        drop(way);
        spawn(Begin { requests, before, leave });
        sender
    }

    /// Sends a request to the task, which `ensure` has begin. Returns false where it ends again and again.
    pub(crate) async fn send(&self, ensure: impl Fn() -> mpsc::Sender<R>, mut request: R) -> bool {
        for _ in 0..MAX_SEND_TRIES {
            match ensure().send(request).await {
                Ok(()) => return true,
                Err(mpsc::error::SendError(back)) => request = back,
            }
            tokio::task::yield_now().await;
        }
        false
    }

    /// The way to the task that works now.
    pub(crate) fn at_work(&self) -> Option<mpsc::Sender<R>> {
        self.way().as_ref().map(|way| way.requests.clone()).filter(|requests| !requests.is_closed())
    }

    /// Closes the way to the task, so that it can end, unless a request waits or it is needed: false then. On a runtime of
    /// several threads a sender may have a place in the channel already: receive until there is nothing more.
    pub(crate) fn release(&self, requests: &mut mpsc::Receiver<R>, is_needed: impl FnOnce() -> bool) -> bool {
        let _way = self.way();
        if !requests.is_empty() || is_needed() {
            return false;
        }
        requests.close();
        true
    }

    fn way(&self) -> MutexGuard<'_, Option<Way<R, S>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Adds numbers to what the one before has, and ends as soon as nothing is asked.
    async fn add(worker: Arc<Worker<u64, u64>>, begin: Begin<u64, u64>, working: Arc<AtomicU32>) {
        let (mut requests, sum, leave) = begin.begin().await;
        assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
        let mut sum = sum.unwrap_or_default();
        while !worker.release(&mut requests, || false) {
            sum += requests.recv().await.expect("one waits, or will come");
            tokio::task::yield_now().await;
        }
        // Somebody may have had a place in the channel already.
        while let Some(more) = requests.recv().await {
            sum += more;
        }
        working.fetch_sub(1, Ordering::SeqCst);
        leave.hand_over(sum);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_next_one_begins_with_what_the_last_one_left_and_no_request_is_lost() {
        let (worker, working) = (Arc::new(Worker::new()), Arc::new(AtomicU32::new(0)));
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (worker, working) = (Arc::clone(&worker), Arc::clone(&working));
            senders.spawn(async move {
                for _ in 0..500 {
                    let ensure = || {
                        let spawn =
                            |begin| drop(tokio::spawn(add(Arc::clone(&worker), begin, Arc::clone(&working))));
                        worker.ensure(spawn)
                    };
                    assert!(worker.send(ensure, 1).await);
                }
            });
        }
        senders.join_all().await;
        let (sender, sum) = oneshot::channel();
        if let Some(last) = worker.at_work() {
            last.closed().await;
        }
        worker.ensure(|begin| drop(tokio::spawn(async { sender.send(begin.begin().await.1).unwrap() })));
        assert_eq!(sum.await.unwrap(), Some(8 * 500));
    }

    #[tokio::test]
    async fn one_that_fails_leaves_nothing_and_another_begins() {
        let worker: Worker<(), u64> = Worker::new();
        worker.ensure(|begin| {
            drop(tokio::spawn(async {
                let (requests, left, leave) = begin.begin().await;
                assert_eq!(left, None);
                leave.hand_over(7);
                drop(requests);
            }));
        });
        for expected in [Some(7), None] {
            if let Some(last) = worker.at_work() {
                last.closed().await;
            }
            let (sender, left) = oneshot::channel();
            worker.ensure(|begin| {
                drop(tokio::spawn(async {
                    // It keeps what it found, and leaves nothing.
                    sender.send(begin.begin().await.1).unwrap();
                }));
            });
            assert_eq!(left.await.unwrap(), expected);
        }
    }
}
