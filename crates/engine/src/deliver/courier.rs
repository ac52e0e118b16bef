//! Runs the task that delivers a session's messages, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use wharf_model::{Code, Failure, Message, Progress, State};

use crate::Result;
use crate::deliver::proof::{ComposerMatch, Proof};
use crate::deliver::queue::{Entry, Facts, Intent};
use crate::deliver::typing::Typist;
use crate::instance::catch_panic::catch_panic;
use crate::instance::shared::Shared;
use crate::observe::observed::Observed;
use crate::session::handle::Handle;

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

/// Starts the courier of a session: it delivers messages one after the other until none is left.
pub(crate) fn spawn(shared: &Arc<Shared>, handle: &Arc<Handle>, observed: &Arc<Observed>) {
    let (shared, handle, observed) = (Arc::clone(shared), Arc::clone(handle), Arc::clone(observed));
    let tasks = shared.tasks.clone();
    tasks.spawn_helper(async move {
        loop {
            let entry = match observed.first() {
                Ok(Some(entry)) => entry,
                Ok(None) if observed.release_courier() => return,
                Ok(None) => continue,
                Err(failure) => {
                    tracing::warn!(session = %handle.id, %failure, "a session's messages cannot be read");
                    return observed.leave_courier();
                }
            };
            let id = entry.receipt.id.clone();
            let courier =
                Courier { typist: Typist::new(&shared, &handle, &observed), entry, behind_draft: false };
            match catch_panic(courier.deliver()).await {
                Ok(Ok(())) => {}
                // Another engine goes on with it.
                Ok(Err(_)) if shared.is_closing() => return observed.leave_courier(),
                Ok(Err(failure)) => end(&observed, &id, &failure),
                Err(panic) => {
                    tracing::error!(session = %handle.id, panic, "the delivery of a message failed");
                    end(
                        &observed,
                        &id,
                        &Failure::new(Code::Internal, format!("the delivery failed: {panic}")),
                    );
                }
            }
        }
    });
}

/// Ends a message that cannot be delivered. What may have been typed is not said to be refused.
fn end(observed: &Observed, id: &str, failure: &Failure) {
    let touched = observed.entry(id).ok().flatten().is_some_and(|entry| entry.intent.is_some());
    let status = match failure.code {
        _ if touched => Progress::Unconfirmed,
        Code::Expired => Progress::Expired,
        _ => Progress::Refused,
    };
    let code = Some(if touched { Code::Unconfirmed } else { failure.code });
    let facts = Facts { code, hint: failure.hint.clone(), ..Facts::default() };
    if let Err(failure) = observed.step(id, status, failure.message.clone(), facts) {
        tracing::warn!(id, %failure, "the end of a message is not known");
    }
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
            let input_lock = observed.input_lock.lock().await;
            // Somebody else may have typed while this waited for the input lock.
            let seen = self.typist.look().await?;
            if self.obstacle(&message, &seen).await.is_some() {
                drop(input_lock);
                continue;
            }
            if observed.entry(&message.id)?.is_none_or(|entry| entry.receipt.status.is_over()) {
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
                observed.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
                return Ok(());
            }
            let presses = &prepared.presses_before_submit;
            self.submit(&observed, input_lock, &message, presses, &mut proof).await?;
            return self.taken_up().await;
        }
    }

    /// Goes on with a message that an engine before this one had begun. What cannot be known is said to be unknown.
    async fn resume(&mut self, message: &Message) -> Result<()> {
        let observed = Arc::clone(&self.typist.observed);
        let input_lock = observed.input_lock.lock().await;
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
            observed.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
            return Ok(());
        }
        // Where there is no composer to read, the end of the text before the cursor is the end of one write: all of it.
        let whole = match &seen.composer {
            Some(composer) => proof.is_all(&composer.text),
            None => proof.composer_match(&seen) == ComposerMatch::Present,
        };
        match (self.entry.intent, proof.composer_match(&seen)) {
            // All of it stands there, and nobody else would have put it there.
            (_, ComposerMatch::Present) if whole && !message.manner.no_submit => {
                self.submit(&observed, input_lock, message, &[], &mut proof).await
            }
            (Some(Intent::Write), ComposerMatch::Present) if whole => {
                let evidence = "it stands in the composer; it was not submitted, as asked".to_owned();
                observed.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
                Ok(())
            }
            (Some(Intent::Submit), ComposerMatch::Empty)
                if self.entry.receipt.status != Progress::Accepted =>
            {
                let evidence =
                    "it stood in the composer, the key was pressed, and the composer is empty".to_owned();
                observed.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
                Ok(())
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
