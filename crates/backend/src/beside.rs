//! Looks at files of others beside the daemon's thread. A file system that never answers costs whoever asked for it, and
//! nobody else.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use wharf_model::{Code, Failure};

use crate::Result;

/// How many looks may be under way. Fewer than the runtime has threads for work that blocks: those that never end must leave
/// some for everybody else.
const MAX_LOOKS: usize = 64;

/// How many of those that look for one session alone: where its files hang, others have threads.
const MAX_SESSION_LOOKS: usize = 2;

/// How long one may take. A disk that spins up is waited for.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The looks that are under way. Clones share them.
#[derive(Clone, Debug)]
pub struct Beside(Arc<Semaphore>);

impl Default for Beside {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKS)))
    }
}

impl Beside {
    /// Looks for one session only, at what that session itself can write.
    pub fn of_one_session() -> Self {
        Self(Arc::new(Semaphore::new(MAX_SESSION_LOOKS)))
    }

    /// Looks at something, and waits for it with a deadline. One that is late goes on alone, and keeps its place among the
    /// 64.
    pub async fn look<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.look_within(LOOK_TIMEOUT, what, work).await
    }

    async fn look_within<T: Send + 'static>(
        &self,
        patience: Duration,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let looking = async {
            let place = Arc::clone(&self.0).acquire_owned().await;
            let place = place.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
            let looked = tokio::task::spawn_blocking(move || {
                let found = work();
                drop(place);
                found
            });
            looked.await.map_err(|error| Failure::new(Code::Internal, format!("a fault of Wharf: {error}")))
        };
        tokio::time::timeout(patience, looking).await.unwrap_or_else(|_| {
            Err(Failure::new(Code::Unavailable, format!("{what} could not be looked at within {patience:?}"))
                .hint("its file system may not answer: `ls` there shows it"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_never_answers_costs_its_asker_and_keeps_its_place() {
        let beside = Beside::default();
        let (let_go, wait) = mpsc::channel::<()>();
        let soon = Duration::from_millis(50);
        let hung = beside.look_within(soon, "/hung", move || wait.recv()).await;
        let failure = hung.expect_err("nothing answers");
        assert_eq!(failure.code, Code::Unavailable, "{failure:?}");
        assert!(failure.message.starts_with("/hung could not be looked at"), "{failure:?}");
        assert_eq!(beside.look("/fine", || 7).await.unwrap(), 7);
        assert_eq!(beside.0.available_permits(), MAX_LOOKS - 1, "the late one is still counted");
        drop(let_go);
        let all = Arc::clone(&beside.0).acquire_many_owned(MAX_LOOKS as u32);
        drop(tokio::time::timeout(Duration::from_secs(30), all).await.expect("it ended").unwrap());
    }

    #[tokio::test]
    async fn a_session_whose_files_hang_has_few_threads_and_costs_no_other() {
        let (hung, other) = (Beside::of_one_session(), Beside::of_one_session());
        let (let_go, wait) = mpsc::channel::<()>();
        let (begun, wait) = (Arc::new(()), Arc::new(std::sync::Mutex::new(wait)));
        for _ in 0..MAX_SESSION_LOOKS * 4 {
            let (held, wait) = (Arc::clone(&begun), Arc::clone(&wait));
            let work = move || wait.lock().map(|wait| (held, wait.recv().is_ok()).1).is_ok();
            assert!(hung.look_within(Duration::from_millis(20), "/hung", work).await.is_err());
        }
        assert!(Arc::strong_count(&begun) <= MAX_SESSION_LOOKS + 1, "those that had no turn never began");
        assert_eq!(other.look("/fine", || 7).await.unwrap(), 7);
        drop(let_go);
        assert_eq!(hung.look("/fine again", || 8).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn those_that_never_end_leave_threads_for_others() {
        let beside = Beside::default();
        let (let_go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let soon = Duration::from_millis(1);
        for _ in 0..MAX_LOOKS + 8 {
            let wait = Arc::clone(&wait);
            let hung = beside.look_within(soon, "/hung", move || wait.lock().map(|wait| wait.recv()).is_ok());
            assert!(hung.await.is_err());
        }
        assert_eq!(tokio::task::spawn_blocking(|| 7).await.unwrap(), 7);
        drop(let_go);
    }
}
