//! Holds the ways to a session's observer and courier, and what these publish.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use wharf_agents::{Budget, Profile};
use wharf_backend::Beside;
use wharf_model::{Code, Failure, Home, Millis, Offset, Receipt};

use crate::Result;
use crate::deliver::courier;
use crate::deliver::queue::Queue;
use crate::deliver::turn::InputTurns;
use crate::instance::shared::{Shared, now};
use crate::observe::event_log::Events;
use crate::observe::memory::Memory;
use crate::observe::observer;
use crate::observe::seen::Sight;
use crate::session::handle::Handle;
use crate::session::requests::{CourierRequest, ObserverRequest};
use crate::session::worker::Worker;

/// The ways to a session's observer and courier, and what they publish. It lives as long as the session's entry; the two come
/// and go. Each fact has one writer: what others want changed they ask the task that has it.
pub(crate) struct Observed {
    /// By what it is driven. Its task sets this when it starts a run.
    driver: watch::Sender<Driver>,
    pub(crate) events: Events,
    pub(crate) input_turns: InputTurns,
    /// Reads of the record that the agent keeps in files of its own.
    pub(crate) record_reads: Beside,
    /// The turn to read all of the log.
    pub(crate) whole_reads: Arc<Semaphore>,
    /// What the observer saw last. Whoever follows it keeps the observer awake.
    pub(crate) sight: watch::Sender<Sight>,
    /// What became of the messages, by the courier; absent until somebody asks.
    pub(crate) receipts: watch::Sender<Option<Receipts>>,
    /// When the engine itself last typed: later input is somebody else's. It only grows, and whoever types moves it.
    own_input: AtomicU64,
    /// Output before this offset was processed: its queries answered, its signals made into events. It only grows.
    processed: AtomicU64,
    observer: Worker<ObserverRequest, Memory>,
    courier: Worker<CourierRequest, Queue>,
    /// Where the messages are.
    messages: PathBuf,
}

/// The receipts of a session, the oldest first.
pub(crate) type Receipts = Arc<[Arc<Receipt>]>;

/// By what a session is driven.
#[derive(Clone)]
struct Driver {
    profile: Arc<Profile>,
    /// What looking at the session may cost, and which patterns cost too much.
    budget: Arc<Budget>,
}

impl Observed {
    pub(crate) fn new(shared: &Shared, handle: &Handle, profile: Arc<Profile>, processed: Offset) -> Self {
        let dir = shared.home.session(&handle.id);
        Self {
            driver: watch::Sender::new(Driver { profile, budget: Arc::default() }),
            events: Events::at(&dir.join(Home::EVENTS)),
            input_turns: InputTurns::new(),
            record_reads: Beside::of_one_session(),
            whole_reads: Arc::new(Semaphore::new(1)),
            sight: watch::Sender::new(Sight::Nothing),
            receipts: watch::Sender::new(None),
            own_input: AtomicU64::new(0),
            processed: AtomicU64::new(processed.0),
            observer: Worker::new(),
            courier: Worker::new(),
            messages: dir.join(Home::MESSAGES),
        }
    }

    /// The profile that it is driven by.
    pub(crate) fn profile(&self) -> Arc<Profile> {
        Arc::clone(&self.driver.borrow().profile)
    }

    /// Has it driven by another profile: what the project's file says counts from one start to the next.
    pub(crate) fn set_profile(&self, profile: Arc<Profile>) {
        self.driver.send_replace(Driver { profile, budget: Arc::default() });
    }

    /// What looking at it may cost, and which patterns cost too much.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.driver.borrow().budget)
    }

    /// Output before this offset was processed.
    pub(crate) fn processed(&self) -> Offset {
        Offset(self.processed.load(Ordering::Acquire))
    }

    pub(crate) fn mark_processed(&self, offset: Offset) {
        self.processed.fetch_max(offset.0, Ordering::AcqRel);
    }

    /// When the engine itself last typed.
    pub(crate) fn own_input(&self) -> Millis {
        Millis(self.own_input.load(Ordering::Acquire))
    }

    /// Notes that the engine itself has just typed: input until now is not somebody else's.
    pub(crate) fn note_own_input(&self) {
        // The clock may have been set back: then the latest is what counts, and not the greatest.
        self.own_input.store(now().0, Ordering::Release);
    }

    /// Follows what is seen. The observer, which is started where there is none, stays awake while somebody does.
    pub(crate) fn follow(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
    ) -> watch::Receiver<Sight> {
        let sight = self.sight.subscribe();
        self.ensure_observer(shared, handle);
        sight
    }

    /// Whether somebody follows what is seen.
    pub(crate) fn is_followed(&self) -> bool {
        self.sight.receiver_count() > 0
    }

    /// Starts the observer where there is none. Returns where to send it requests.
    pub(crate) fn ensure_observer(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
    ) -> mpsc::Sender<ObserverRequest> {
        self.observer.ensure(|begin| observer::spawn(shared, handle, self, begin))
    }

    /// Asks the observer for something, which is started where there is none. Returns false where it cannot be asked in time.
    pub(crate) async fn ask_observer(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
        request: ObserverRequest,
    ) -> bool {
        let sent = self.observer.send(|| self.ensure_observer(shared, handle), request);
        tokio::time::timeout(shared.timeouts.call, sent).await.unwrap_or(false)
    }

    /// Whether an observer is at work.
    pub(crate) fn has_observer(&self) -> bool {
        self.observer.at_work().is_some()
    }

    /// Lets the observer end, unless somebody needs it now: false then.
    pub(crate) fn release_observer(&self, requests: &mut mpsc::Receiver<ObserverRequest>) -> bool {
        self.observer.release(requests, || self.is_followed())
    }

    /// Starts the courier where there is none. Returns where to send it requests.
    fn courier(self: &Arc<Self>, shared: &Arc<Shared>, handle: &Arc<Handle>) -> mpsc::Sender<CourierRequest> {
        self.courier.ensure(|begin| courier::spawn(shared, handle, self, begin))
    }

    /// Has the courier look for messages to deliver.
    pub(crate) fn wake_courier(self: &Arc<Self>, shared: &Arc<Shared>, handle: &Arc<Handle>) {
        if self.courier.at_work().is_none() && !self.messages.exists() {
            return;
        }
        // One that has so many requests looks for messages after each of them.
        let _ = self.courier(shared, handle).try_send(CourierRequest::Deliver);
    }

    /// Asks the courier for something, which is started where there is none.
    pub(crate) async fn ask_courier<T>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
        ask: impl FnOnce(oneshot::Sender<Result<T>>) -> CourierRequest,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.courier.send(|| self.courier(shared, handle), ask(reply)).await.then_some(())?;
            // It answers as soon as the disk does. Where the engine closes meanwhile, it is dropped, and its answer with it.
            answer.await.ok()
        };
        let unasked = || Failure::new(Code::Unreachable, "the engine is closing; the session goes on");
        asked.await.unwrap_or_else(|| Err(unasked()))
    }

    /// Lets the courier end, unless something is asked of it: false then.
    pub(crate) fn release_courier(&self, requests: &mut mpsc::Receiver<CourierRequest>) -> bool {
        self.courier.release(requests, || false)
    }

    /// What became of a session's messages.
    pub(crate) async fn receipts(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
    ) -> Result<Receipts> {
        let known = self.receipts.borrow().clone();
        if let Some(receipts) = known {
            return Ok(receipts);
        }
        if !self.messages.exists() {
            return Ok(Receipts::default());
        }
        self.ask_courier(shared, handle, CourierRequest::Load).await?;
        Ok(self.receipts.borrow().clone().unwrap_or_default())
    }

    /// Where a session's messages are.
    pub(crate) fn messages(&self) -> &Path {
        &self.messages
    }

    /// Makes an event of something.
    pub(crate) fn add_event(&self, source: &str, kind: &str, data: Value) {
        match self.events.add(self.processed(), source, kind, data) {
            Ok(_) => {}
            // What comes after the end, as the receipt of a message that nobody will read, is found elsewhere.
            Err(failure) if failure.code == Code::Ended => {
                tracing::debug!(kind, "an event came after the end of its session");
            }
            Err(failure) => tracing::warn!(%failure, kind, "an event is lost"),
        }
    }

    /// Waits until neither observer nor courier works any more: nothing adds events then.
    pub(crate) async fn at_rest(&self) {
        loop {
            // The courier needs the observer, so it is waited for first.
            if let Some(courier) = self.courier.at_work() {
                courier.closed().await;
            } else if let Some(observer) = self.observer.at_work() {
                observer.closed().await;
            } else {
                return;
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
