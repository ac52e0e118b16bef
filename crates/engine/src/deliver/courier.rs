//! Runs the task that delivers a session's messages, one after the other.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use tokio::sync::mpsc;
use wharf_model::{Code, Failure, Message, Progress, Receipt, State};

use crate::Result;
use crate::deliver::proof::{ComposerMatch, Proof};
use crate::deliver::queue::{Entry, Facts, Intent, Queue};
use crate::deliver::typing::Typist;
use crate::instance::catch_panic::catch_panic;
use crate::instance::shared::Shared;
use crate::observe::observed::Observed;
use crate::session::handle::Handle;
use crate::session::requests::{CourierRequest, MessageStep};
use crate::session::worker::Begin;

/// How long the screen must be still before a text is typed.
pub(super) const TYPING_QUIET_TIME: Duration = Duration::from_millis(120);
/// How long that is waited for.
pub(super) const TYPING_QUIET_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the screen must be still between a text and the submit key. An Enter within 120 ms of a paste is a line break to
/// some programs.
pub(super) const SUBMIT_QUIET_TIME: Duration = Duration::from_millis(150);
/// How long that is waited for.
pub(super) const SUBMIT_QUIET_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a turn may take to show after its message was confirmed, before the next message is looked at.
const TURN_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Starts the courier of a session: it has the session's messages, and delivers one after the other until none is left.
pub(crate) fn spawn(
    shared: &Arc<Shared>,
    handle: &Arc<Handle>,
    observed: &Arc<Observed>,
    begin: Begin<CourierRequest, Queue>,
) {
    let (shared, handle, observed) = (Arc::clone(shared), Arc::clone(handle), Arc::clone(observed));
    let tasks = shared.tasks.clone();
    tasks.spawn_helper(async move {
        let (mut requests, queue, leave) = begin.begin().await;
        let queue = match queue {
            Some(queue) => Ok(queue),
            None => open(&shared, &handle, &observed).await,
        };
        match queue {
            Ok(queue) => {
                let receipts = observed.receipts.clone();
                let desk = Desk { shared, handle, observed, queue, delivers: false };
                match desk.run(requests).await {
                    Some(queue) => leave.hand_over(queue),
                    // Whoever asks next reads them from disk.
                    None => drop(receipts.send_replace(None)),
                }
            }
            Err(failure) => {
                tracing::warn!(session = %handle.id, %failure, "a session's messages cannot be read");
                requests.close();
                while let Some(request) = requests.recv().await {
                    request.refuse(&failure);
                }
            }
        }
    });
}

async fn open(shared: &Shared, handle: &Handle, observed: &Observed) -> Result<Queue> {
    let (path, id) = (observed.messages().to_owned(), handle.id.clone());
    let opened = shared.tasks.spawn_blocking(move || Queue::open(&path, &id)).await;
    opened.map_err(|error| Failure::new(Code::Internal, format!("reading failed: {error}")))?
}

/// The delivery of one message: its id, and how it ends, be it by a panic.
type Delivery = (String, Pin<Box<dyn Future<Output = std::result::Result<Result<()>, String>> + Send>>);

/// Has the messages of one session: it takes them, moves them on and publishes what becomes of them.
struct Desk {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    observed: Arc<Observed>,
    queue: Queue,
    /// Whether somebody asked for a delivery. Without that, those of a session that is over are only shown.
    delivers: bool,
}

impl Desk {
    /// Serves requests and delivers messages until there are none. Returns what it has, for the next one.
    async fn run(mut self, mut requests: mpsc::Receiver<CourierRequest>) -> Option<Queue> {
        let mut delivery: Option<Delivery> = None;
        self.publish();
        loop {
            let delivers = (self.delivers || !self.handle.is_over()) && !self.shared.is_closing();
            if delivery.is_none() && delivers {
                delivery = self.queue.first().map(|entry| self.begin(entry));
            }
            if delivery.is_none() && self.observed.release_courier(&mut requests) {
                return self.close(requests).await;
            }
            let ended = tokio::select! {
                Some(request) = requests.recv() => {
                    self = self.serve(request).await?;
                    continue;
                }
                ended = end_of(&mut delivery) => ended,
            };
            let Some((id, _)) = delivery.take() else { continue };
            let failure = match ended {
                Ok(Ok(())) if self.queue.entry(&id).is_none_or(|entry| entry.receipt.status.is_over()) => {
                    continue;
                }
                // It would be begun again at once, and for ever.
                Ok(Ok(())) => Failure::new(Code::Internal, "the delivery ended without saying how"),
                // Another engine goes on with it.
                Ok(Err(_)) if self.shared.is_closing() => return None,
                Ok(Err(failure)) => failure,
                Err(panic) => {
                    tracing::error!(session = %self.handle.id, panic, "the delivery of a message failed");
                    Failure::new(Code::Internal, format!("the delivery failed: {panic}"))
                }
            };
            self.end(&id, &failure);
        }
    }

    /// Serves those who had a place in the channel already when it was closed, and has the next one deliver what they brought.
    async fn close(mut self, mut requests: mpsc::Receiver<CourierRequest>) -> Option<Queue> {
        let mut late = false;
        while let Some(request) = requests.recv().await {
            late = true;
            self = self.serve(request).await?;
        }
        if late && self.queue.first().is_some() && !self.shared.is_closing() {
            self.observed.wake_courier(&self.shared, &self.handle);
        }
        Some(self.queue)
    }

    fn begin(&self, entry: Entry) -> Delivery {
        let id = entry.receipt.id.clone();
        let typist = Typist::new(&self.shared, &self.handle, &self.observed);
        let courier = Courier { typist, entry, behind_draft: false };
        (id, Box::pin(catch_panic(courier.deliver())))
    }

    /// Does what is asked. What waits for the disk itself does so beside everything else.
    async fn serve(mut self, request: CourierRequest) -> Option<Self> {
        match request {
            CourierRequest::Deliver => self.delivers = true,
            CourierRequest::Load(reply) => drop(reply.send(Ok(()))),
            CourierRequest::Accept(text, manner, reply) => {
                self.delivers = true;
                let accepted;
                (self, accepted) = self.on_disk(move |queue| queue.accept(text, *manner)).await?;
                self.publish();
                drop(reply.send(accepted));
            }
            CourierRequest::Cancel(id, reply) => drop(reply.send(self.cancel(&id))),
            CourierRequest::Intend(id, intent, reply) => {
                let kept;
                (self, kept) = match self.queue.entry(&id) {
                    Some(entry) if !entry.receipt.status.is_over() => {
                        self.on_disk(move |queue| queue.intend(&id, intent)).await?
                    }
                    _ => (self, Err(taken_back())),
                };
                drop(reply.send(kept));
            }
            CourierRequest::Step(step, reply) => {
                let MessageStep { id, status, evidence, facts } = *step;
                drop(reply.send(Ok(self.step(&id, status, evidence, facts))));
            }
        }
        Some(self)
    }

    /// Has the queue do something that waits for the disk. Nothing where the engine ends meanwhile.
    async fn on_disk<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut Queue) -> T + Send + 'static,
    ) -> Option<(Self, T)> {
        let Self { shared, handle, observed, mut queue, delivers } = self;
        let done = shared.tasks.spawn_blocking(move || {
            let result = work(&mut queue);
            (queue, result)
        });
        let (queue, result) = done.await.ok()?;
        Some((Self { shared, handle, observed, queue, delivers }, result))
    }

    fn cancel(&mut self, id: &str) -> Result<Option<Receipt>> {
        let Some(entry) = self.queue.entry(id) else { return Ok(None) };
        if entry.receipt.status.is_over() {
            return Ok(Some(Receipt::clone(&entry.receipt)));
        }
        if entry.intent.is_some() {
            return Err(Failure::new(Code::Running, format!("message {id} is being typed already"))
                .hint("`wharf interrupt` stops the turn that it begins"));
        }
        let facts = Facts { code: Some(Code::Cancelled), ..Facts::default() };
        let evidence = "it was taken back before it was typed".to_owned();
        Ok(Some(self.step(id, Progress::Cancelled, evidence, facts)))
    }

    /// Ends a message that cannot be delivered. What may have been typed is not said to be refused.
    fn end(&mut self, id: &str, failure: &Failure) {
        let Some(entry) = self.queue.entry(id).filter(|entry| !entry.receipt.status.is_over()) else {
            return;
        };
        let touched = entry.intent.is_some();
        let status = match failure.code {
            _ if touched => Progress::Unconfirmed,
            Code::Expired => Progress::Expired,
            _ => Progress::Refused,
        };
        let code = Some(if touched { Code::Unconfirmed } else { failure.code });
        let facts = Facts { code, hint: failure.hint.clone(), ..Facts::default() };
        self.step(id, status, failure.message.clone(), facts);
    }

    /// Moves a message on, tells its readers, and makes it an event.
    fn step(&mut self, id: &str, status: Progress, evidence: String, facts: Facts) -> Receipt {
        let receipt = self.queue.step(id, status, evidence, facts);
        self.publish();
        let data = json!({
            "id": receipt.id, "status": receipt.status, "evidence": receipt.evidence, "attempts": receipt.attempts,
        });
        self.observed.add_event("engine", "message", data);
        receipt
    }

    fn publish(&self) {
        self.observed.receipts.send_replace(Some(self.queue.receipts()));
    }
}

async fn end_of(delivery: &mut Option<Delivery>) -> std::result::Result<Result<()>, String> {
    match delivery {
        Some((_, delivery)) => delivery.await,
        None => std::future::pending().await,
    }
}

fn taken_back() -> Failure {
    Failure::new(Code::Cancelled, "it was taken back")
}

/// Carries one message to one session.
pub(super) struct Courier {
    pub(super) typist: Typist,
    pub(super) entry: Entry,
    /// Whether the text was typed behind what somebody else had begun, as asked: the two are one.
    pub(super) behind_draft: bool,
}

impl Courier {
    async fn deliver(mut self) -> Result<()> {
        let Some(message) = self.entry.message.clone() else { return Ok(()) };
        let observed = Arc::clone(&self.typist.observed);
        if self.entry.intent.is_some() {
            return self.resume(&message).await;
        }
        let prepared = observed.profile().prepare(&message.text, message.manner.raw)?;
        loop {
            let _ = self.ready(&message).await?;
            let turn = observed.input_turns.take().await?;
            // Somebody else may have typed while this waited for the turn.
            let seen = self.typist.look().await?;
            if self.obstacle(&message, &seen).await.is_some() {
                drop(turn);
                continue;
            }
            if self.cancelled(&message) {
                return Ok(());
            }
            let seen = match self.draft(&seen).await {
                Some(_) if message.manner.clear_draft => self.clear().await?,
                draft => {
                    self.behind_draft = draft.is_some();
                    seen
                }
            };
            let mut proof = Proof::begin(&self.typist, &prepared.text, SystemTime::now()).await;
            self.write(&message, &prepared, &seen, &proof).await?;
            if message.manner.no_submit {
                let evidence = "it stands in the composer; it was not submitted, as asked".to_owned();
                return self.step(&message.id, Progress::Confirmed, evidence, Facts::default()).await;
            }
            let presses = &prepared.presses_before_submit;
            self.submit(turn, &message, presses, &mut proof).await?;
            return self.taken_up().await;
        }
    }

    /// Keeps what is about to be done, on disk before this returns.
    pub(super) async fn intend(&self, id: &str, intent: Intent) -> Result<()> {
        let Typist { shared, handle, observed, .. } = &self.typist;
        let ask = |reply| CourierRequest::Intend(id.to_owned(), intent, reply);
        observed.ask_courier(shared, handle, ask).await
    }

    /// Moves the message on.
    pub(super) async fn step(
        &self,
        id: &str,
        status: Progress,
        evidence: String,
        facts: Facts,
    ) -> Result<()> {
        let Typist { shared, handle, observed, .. } = &self.typist;
        let step = Box::new(MessageStep { id: id.to_owned(), status, evidence, facts });
        observed.ask_courier(shared, handle, |reply| CourierRequest::Step(step, reply)).await.map(drop)
    }

    /// Goes on with a message that an engine before this one had begun. What cannot be known is said to be unknown.
    async fn resume(&mut self, message: &Message) -> Result<()> {
        let observed = Arc::clone(&self.typist.observed);
        let turn = observed.input_turns.take().await?;
        let unknown = |why: &str| {
            Failure::new(Code::Unconfirmed, format!("the daemon ended while it was delivered: {why}"))
                .hint("`wharf capture` shows the screen; it is not sent again")
        };
        let since = SystemTime::UNIX_EPOCH + Duration::from_millis(message.created.0.saturating_sub(1_000));
        let text = observed.profile().prepare(&message.text, message.manner.raw)?.text;
        let mut proof = Proof::begin(&self.typist, &text, since).await;
        self.typist.read().await?;
        let seen = self.typist.still(TYPING_QUIET_TIME, Instant::now() + TYPING_QUIET_TIMEOUT).await?;
        let seen = match seen {
            Some(seen) => seen,
            None => self.typist.look().await?,
        };
        if let Some(evidence) = proof.recorded().await {
            return self.step(&message.id, Progress::Confirmed, evidence, Facts::default()).await;
        }
        // Where there is no composer to read, the end of the text before the cursor is the end of one write: all of it.
        let whole = match &seen.composer {
            Some(composer) => proof.is_all(&composer.text),
            None => proof.composer_match(&seen) == ComposerMatch::Present,
        };
        match (self.entry.intent, proof.composer_match(&seen)) {
            // All of it stands there, and nobody else would have put it there.
            (_, ComposerMatch::Present) if whole && !message.manner.no_submit => {
                self.submit(turn, message, &[], &mut proof).await
            }
            (Some(Intent::Write), ComposerMatch::Present) if whole => {
                let evidence = "it stands in the composer; it was not submitted, as asked".to_owned();
                self.step(&message.id, Progress::Confirmed, evidence, Facts::default()).await
            }
            (Some(Intent::Submit), ComposerMatch::Empty)
                if self.entry.receipt.status != Progress::Accepted =>
            {
                let evidence =
                    "it stood in the composer, the key was pressed, and the composer is empty".to_owned();
                self.step(&message.id, Progress::Confirmed, evidence, Facts::default()).await
            }
            (_, ComposerMatch::Present) => Err(unknown("a part of it stands in the composer")),
            (_, ComposerMatch::Empty) => Err(unknown("the composer is empty")),
            (_, ComposerMatch::Other) => Err(unknown("the composer holds something else")),
            (_, ComposerMatch::NoComposer) => Err(unknown("nothing on the screen tells")),
        }
    }

    /// Gives the turn that a message began a moment to show, so that the next message does not take it for rest.
    async fn taken_up(&mut self) -> Result<()> {
        let seen = self.typist.look().await?;
        if seen.is_judged() && seen.report.state == State::Idle {
            let deadline = Instant::now() + TURN_TIMEOUT;
            // An end of the session is the next message's matter.
            let _ = self.typist.until(deadline, |seen| seen.report.state != State::Idle).await;
        }
        Ok(())
    }
}
