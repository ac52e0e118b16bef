//! Holds what observing one session and delivering to it needs: profile, events, queue, and its two helper tasks.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use wharf_agents::{Budget, Profile};
use wharf_model::{Code, Failure, Home, Manner, Millis, Offset, Progress, Receipt, State};

use wharf_backend::Beside;

use crate::Result;
use crate::deliver::courier;
use crate::deliver::queue::{Entry, Facts, Intent, Queue};
use crate::instance::shared::{Shared, now};
use crate::observe::event_log::Events;
use crate::observe::judge::{Basis, SourceClaim};
use crate::observe::observer;
use crate::observe::seen::Seen;
use crate::session::handle::Handle;
use crate::session::requests::{MAX_QUEUED_REQUESTS, ObserverRequest};

/// How long a turn may take to show after its message was taken.
const EXPECTED_TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// What observing one session and delivering to it needs. It lives as long as the session's entry; its tasks come and go.
pub(crate) struct Observed {
    profile: Mutex<Arc<Profile>>,
    budget: Mutex<Arc<Budget>>,
    pub(crate) events: Events,
    messages: PathBuf,
    queue: Mutex<Option<Queue>>,
    /// Grows with every change of a receipt.
    pub(crate) receipts: watch::Sender<u64>,
    /// Held across awaits, on purpose: the turn to type. A message, an answer or an interrupt is several keys and looks, and
    /// nobody else's may come between them.
    pub(crate) input_lock: tokio::sync::Mutex<()>,
    /// Reads of the record that the agent keeps in files of its own.
    pub(crate) record_reads: Beside,
    /// The turn to read all of the log.
    pub(crate) whole_reads: Arc<Semaphore>,
    /// What was seen last; absent until the first look, and while the observer sleeps.
    pub(crate) seen: watch::Sender<Option<Arc<Seen>>>,
    /// Why its log cannot be read, if so: whoever waits to see something stops waiting.
    pub(crate) unreadable: watch::Sender<Option<Failure>>,
    /// How many need the screen now.
    pub(crate) watchers: watch::Sender<usize>,
    /// States that hooks and programs told, until the observer takes them.
    pub(crate) agent_events: Mutex<Vec<AgentEvent>>,
    pub(crate) wake: Notify,
    /// The prompt that the agent itself said began its turn, and when.
    pub(crate) prompt: Mutex<Option<(Millis, String)>>,
    /// Whether the agent's hooks have called us.
    pub(crate) has_hooks: AtomicBool,
    /// Until when a turn is expected that a message has begun and that does not show yet.
    turn_expected: Mutex<Option<Instant>>,
    /// When a turn was last seen.
    last_turn: Mutex<Option<Instant>>,
    /// What the program's prompt was before anybody typed, where it looks like the prompt for the rest of something.
    pub(crate) main_prompt: Mutex<Option<String>>,
    /// The dialogs of its start that were answered: the run, and the question's name.
    pub(crate) answered_startup: Mutex<Vec<(u32, String)>>,
    /// When the engine itself last typed: later input is somebody else's.
    pub(crate) own_input: Mutex<Millis>,
    /// Output before this offset was processed: its queries answered, its signals made into events.
    processed: AtomicU64,
    workers: Mutex<Workers>,
}

/// What a hook or a program of the session told about its state.
pub(crate) struct AgentEvent {
    pub(crate) kind: String,
    pub(crate) state: Option<State>,
    pub(crate) evidence: String,
}

impl AgentEvent {
    pub(crate) fn claim(&self) -> Option<SourceClaim> {
        let state = self.state?;
        let movement = format!("{} {}", self.kind, self.evidence);
        Some(SourceClaim {
            state,
            rule: self.kind.clone(),
            evidence: self.evidence.clone(),
            movement,
            firm: false,
            basis: Basis::Rule,
        })
    }
}

#[derive(Default)]
struct Workers {
    observer: Option<mpsc::Sender<ObserverRequest>>,
    courier: bool,
}

/// Keeps a session's observer awake while it lives.
pub(crate) struct AwakeGuard(Arc<Observed>);

impl Drop for AwakeGuard {
    fn drop(&mut self) {
        self.0.watchers.send_modify(|watchers| *watchers -= 1);
    }
}

impl Observed {
    pub(crate) fn new(shared: &Shared, handle: &Handle, profile: Arc<Profile>, processed: Offset) -> Self {
        let dir = shared.home.session(&handle.id);
        Self {
            profile: Mutex::new(profile),
            budget: Mutex::default(),
            events: Events::at(&dir.join(Home::EVENTS)),
            messages: dir.join(Home::MESSAGES),
            queue: Mutex::new(None),
            receipts: watch::Sender::new(0),
            input_lock: tokio::sync::Mutex::new(()),
            record_reads: Beside::of_one_session(),
            whole_reads: Arc::new(Semaphore::new(1)),
            seen: watch::Sender::new(None),
            unreadable: watch::Sender::new(None),
            watchers: watch::Sender::new(0),
            agent_events: Mutex::new(Vec::new()),
            wake: Notify::new(),
            prompt: Mutex::new(None),
            has_hooks: AtomicBool::new(false),
            turn_expected: Mutex::new(None),
            last_turn: Mutex::new(None),
            main_prompt: Mutex::new(None),
            answered_startup: Mutex::default(),
            own_input: Mutex::new(Millis(0)),
            processed: AtomicU64::new(processed.0),
            workers: Mutex::new(Workers::default()),
        }
    }

    /// Takes the turn to type, or fails when somebody else has it for too long.
    pub(crate) async fn lock_input(&self, within: Duration) -> Result<tokio::sync::MutexGuard<'_, ()>> {
        let turn = tokio::time::timeout(within, self.input_lock.lock()).await;
        turn.map_err(|_| {
            Failure::new(Code::Busy, format!("a message is being typed there, and was for {within:?}"))
                .hint("`wharf messages` shows which; `wharf capture` shows the screen")
        })
    }

    /// The profile that it is driven by.
    pub(crate) fn profile(&self) -> Arc<Profile> {
        Arc::clone(&lock(&self.profile))
    }

    /// Has it driven by another profile: what the project's file says counts from one start to the next.
    pub(crate) fn set_profile(&self, profile: Arc<Profile>) {
        *lock(&self.profile) = profile;
        *lock(&self.budget) = Arc::default();
    }

    /// What looking at it may cost, and which patterns cost too much.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        Arc::clone(&lock(&self.budget))
    }

    /// Output before this offset was processed.
    pub(crate) fn processed(&self) -> Offset {
        Offset(self.processed.load(Ordering::Acquire))
    }

    pub(crate) fn mark_processed(&self, offset: Offset) {
        self.processed.fetch_max(offset.0, Ordering::AcqRel);
    }

    /// Starts the observer, and keeps it awake while the guard lives.
    pub(crate) fn keep_observer_awake(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
    ) -> AwakeGuard {
        self.watchers.send_modify(|watchers| *watchers += 1);
        let guard = AwakeGuard(Arc::clone(self));
        self.ensure_observer(shared, handle);
        guard
    }

    /// Starts the observer where there is none. Returns where to send it requests.
    pub(crate) fn ensure_observer(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
    ) -> mpsc::Sender<ObserverRequest> {
        let mut workers = self.workers();
        if let Some(observer) = workers.observer.as_ref().filter(|sender| !sender.is_closed()) {
            return observer.clone();
        }
        let (sender, requests) = mpsc::channel(MAX_QUEUED_REQUESTS);
        workers.observer = Some(sender.clone());
        observer::spawn(shared, handle, self, requests);
        sender
    }

    /// Whether an observer is at work.
    pub(crate) fn has_observer(&self) -> bool {
        self.workers().observer.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Lets the observer end, unless somebody needs it now: false then.
    pub(crate) fn release_observer(&self, requests: &mut mpsc::Receiver<ObserverRequest>) -> bool {
        let mut workers = self.workers();
        if *self.watchers.borrow() > 0 || !requests.is_empty() || !lock(&self.agent_events).is_empty() {
            return false;
        }
        requests.close();
        workers.observer = None;
        true
    }

    /// Starts the courier where there is none.
    pub(crate) fn ensure_courier(self: &Arc<Self>, shared: &Arc<Shared>, handle: &Arc<Handle>) {
        if !std::mem::replace(&mut self.workers().courier, true) {
            courier::spawn(shared, handle, self);
        }
    }

    /// Lets the courier end, unless a message waits: false then.
    pub(crate) fn release_courier(&self) -> bool {
        let mut workers = self.workers();
        let more = self.with_queue(|queue| Ok(queue.first().is_some())).unwrap_or(false);
        workers.courier = more;
        !more
    }

    /// Lets the courier end although messages wait: the engine is closing, or the queue cannot be read.
    pub(crate) fn leave_courier(&self) {
        self.workers().courier = false;
    }

    /// Puts a message into the queue, on disk.
    pub(crate) fn accept(&self, text: String, manner: Manner) -> Result<Receipt> {
        let receipt = self.with_queue(|queue| queue.accept(text, manner))?;
        self.receipts.send_modify(|count| *count += 1);
        Ok(receipt)
    }

    pub(crate) fn first(&self) -> Result<Option<Entry>> {
        self.with_queue(|queue| Ok(queue.first()))
    }

    pub(crate) fn receipt(&self, id: &str) -> Result<Option<Receipt>> {
        self.with_queue(|queue| Ok(queue.entry(id).map(|entry| entry.receipt.clone())))
    }

    pub(crate) fn entry(&self, id: &str) -> Result<Option<Entry>> {
        self.with_queue(|queue| Ok(queue.entry(id).cloned()))
    }

    pub(crate) fn all_receipts(&self) -> Result<Vec<Receipt>> {
        if !self.messages.exists() {
            return Ok(Vec::new());
        }
        self.with_queue(|queue| Ok(queue.receipts()))
    }

    pub(crate) fn intend(&self, id: &str, intent: Intent) -> Result<()> {
        self.with_queue(|queue| queue.intend(id, intent))
    }

    /// Moves a message on, tells its readers, and makes it an event.
    pub(crate) fn step(&self, id: &str, status: Progress, evidence: String, facts: Facts) -> Result<Receipt> {
        let receipt = self.with_queue(|queue| Ok(queue.step(id, status, evidence, facts)))?;
        self.receipts.send_modify(|count| *count += 1);
        let data = json!({
            "id": receipt.id, "status": receipt.status, "evidence": receipt.evidence, "attempts": receipt.attempts,
        });
        self.add_event("engine", "message", data);
        Ok(receipt)
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

    /// Whether observer or courier may still add events.
    pub(crate) fn has_workers(&self) -> bool {
        let workers = self.workers();
        workers.courier || workers.observer.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Notes that the engine itself has just typed: input until now is not somebody else's.
    pub(crate) fn note_own_input(&self) {
        *lock(&self.own_input) = now();
    }

    /// A message was taken: what looks idle is so no longer, until the turn has shown or does not come.
    ///
    /// Whether it is still to come: a turn that was seen since the key was pressed is not waited for again.
    pub(crate) fn expect_turn(&self, pressed: Instant) -> bool {
        if lock(&self.last_turn).is_some_and(|at| at >= pressed) {
            return false;
        }
        *lock(&self.turn_expected) = Some(Instant::now() + EXPECTED_TURN_TIMEOUT);
        self.wake.notify_one();
        true
    }

    /// A turn is over, by what the agent itself says. Where its beginning was not told with it (`whole`), it may be the
    /// turn before, of which it says so this late.
    pub(crate) fn end_turn(&self, whole: bool) {
        let late = Duration::from_millis(400);
        let ours = |until: &mut Instant| whole || *until + late <= Instant::now() + EXPECTED_TURN_TIMEOUT;
        let over = lock(&self.turn_expected).take_if(ours);
        if over.is_some() {
            self.wake.notify_one();
        }
    }

    /// Whether a turn is expected; not any more once it has been seen.
    pub(crate) fn turn_expected_until(&self, seen: bool) -> Option<Instant> {
        if seen {
            *lock(&self.last_turn) = Some(Instant::now());
        }
        let mut expected = lock(&self.turn_expected);
        expected.take_if(|until| seen || Instant::now() >= *until);
        *expected
    }

    /// The prompt that the agent said began a turn after a moment.
    pub(crate) fn prompted(&self, after: Millis) -> Option<String> {
        lock(&self.prompt).as_ref().filter(|(at, _)| *at >= after).map(|(_, prompt)| prompt.clone())
    }

    fn with_queue<T>(&self, work: impl FnOnce(&mut Queue) -> Result<T>) -> Result<T> {
        let mut queue = lock(&self.queue);
        if queue.is_none() {
            let id = self.messages.parent().and_then(|dir| dir.file_name()).and_then(|name| name.to_str());
            let id = id.and_then(|id| id.parse().ok()).ok_or_else(|| {
                Failure::new(wharf_model::Code::Internal, "a session's directory is not named by its id")
            })?;
            *queue = Some(Queue::open(&self.messages, &id)?);
        }
        work(queue.as_mut().expect("it was just opened"))
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        lock(&self.workers)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
