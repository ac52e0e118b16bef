//! Runs the task that delivers a session's messages, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use wharf_model::{Code, Failure, Message, Progress, State};

use crate::Result;
use crate::deliver::proof::{Place, Proof};
use crate::deliver::queue::{Entry, Facts, Intent};
use crate::deliver::typing::Typist;
use crate::instance::catch_panic::Guarded;
use crate::instance::shared::Shared;
use crate::observe::observed::Attention;
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
pub(crate) fn spawn(shared: &Arc<Shared>, handle: &Arc<Handle>, attention: &Arc<Attention>) {
    let (shared, handle, attention) = (Arc::clone(shared), Arc::clone(handle), Arc::clone(attention));
    tokio::spawn(async move {
        loop {
            let entry = match attention.first() {
                Ok(Some(entry)) => entry,
                Ok(None) if attention.dismiss() => return,
                Ok(None) => continue,
                Err(failure) => {
                    tracing::warn!(session = %handle.id, %failure, "a session's messages cannot be read");
                    return attention.abandon();
                }
            };
            let id = entry.receipt.id.clone();
            let courier =
                Courier { typist: Typist::new(&shared, &handle, &attention), entry, behind_draft: false };
            match Guarded::new(courier.deliver()).await {
                Ok(Ok(())) => {}
                // Another engine goes on with it.
                Ok(Err(_)) if *shared.closing.borrow() => return attention.abandon(),
                Ok(Err(failure)) => end(&attention, &id, &failure),
                Err(panic) => {
                    tracing::error!(session = %handle.id, panic, "the delivery of a message failed");
                    end(
                        &attention,
                        &id,
                        &Failure::new(Code::Internal, format!("the delivery failed: {panic}")),
                    );
                }
            }
        }
    });
}

/// Ends a message that cannot be delivered. What may have been typed is not said to be refused.
fn end(attention: &Attention, id: &str, failure: &Failure) {
    let touched = attention.entry(id).ok().flatten().is_some_and(|entry| entry.intent.is_some());
    let status = match failure.code {
        _ if touched => Progress::Unconfirmed,
        Code::Expired => Progress::Expired,
        _ => Progress::Refused,
    };
    let code = Some(if touched { Code::Unconfirmed } else { failure.code });
    let facts = Facts { code, hint: failure.hint.clone(), ..Facts::default() };
    if let Err(failure) = attention.step(id, status, failure.message.clone(), facts) {
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
        let attention = Arc::clone(&self.typist.attention);
        if self.entry.intent.is_some() {
            return self.resume(&message).await;
        }
        let prepared = attention.profile().prepare(&message.text, message.manner.raw)?;
        loop {
            let _ = self.ready(&message).await?;
            let pen = attention.pen.lock().await;
            // Somebody else may have typed while the pen was waited for.
            let seen = self.typist.look().await?;
            if self.obstacle(&message, &seen).await.is_some() {
                drop(pen);
                continue;
            }
            if attention.entry(&message.id)?.is_none_or(|entry| entry.receipt.status.is_over()) {
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
                attention.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
                return Ok(());
            }
            self.submit(&message, &prepared.presses_before_submit, &mut proof).await?;
            drop(pen);
            return self.taken_up().await;
        }
    }

    /// Goes on with a message that an engine before this one had begun. What cannot be known is said to be unknown.
    async fn resume(&mut self, message: &Message) -> Result<()> {
        let attention = Arc::clone(&self.typist.attention);
        let _pen = attention.pen.lock().await;
        let unknown = |why: &str| {
            Failure::new(Code::Unconfirmed, format!("the daemon ended while it was delivered: {why}"))
                .hint("`wharf capture` shows the screen; it is not sent again")
        };
        let since = SystemTime::UNIX_EPOCH + Duration::from_millis(message.created.0.saturating_sub(1_000));
        let text = attention.profile().prepare(&message.text, message.manner.raw)?.text;
        let mut proof = Proof::begin(&self.typist, &text, since).await;
        self.typist.read().await?;
        let seen = self.typist.still(TYPING_QUIET_TIME, Instant::now() + TYPING_QUIET_TIMEOUT).await?;
        let seen = match seen {
            Some(seen) => seen,
            None => self.typist.look().await?,
        };
        if let Some(evidence) = proof.recorded().await {
            attention.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
            return Ok(());
        }
        // Where there is no composer to read, the end of the text before the cursor is the end of one write: all of it.
        let whole = match &seen.composer {
            Some(composer) => proof.is_all(&composer.text),
            None => proof.place(&seen) == Place::There,
        };
        match (self.entry.intent, proof.place(&seen)) {
            // All of it stands there, and nobody else would have put it there.
            (_, Place::There) if whole && !message.manner.no_submit => {
                self.submit(message, &[], &mut proof).await
            }
            (Some(Intent::Write), Place::There) if whole => {
                let evidence = "it stands in the composer; it was not submitted, as asked".to_owned();
                attention.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
                Ok(())
            }
            (Some(Intent::Submit), Place::Gone) if self.entry.receipt.status != Progress::Accepted => {
                let evidence =
                    "it stood in the composer, the key was pressed, and the composer is empty".to_owned();
                attention.step(&message.id, Progress::Confirmed, evidence, Facts::default())?;
                Ok(())
            }
            (_, Place::There) => Err(unknown("a part of it stands in the composer")),
            (_, Place::Gone) => Err(unknown("the composer is empty")),
            (_, Place::Other) => Err(unknown("the composer holds something else")),
            (_, Place::Unseen) => Err(unknown("nothing on the screen tells")),
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
