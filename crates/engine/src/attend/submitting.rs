//! Pressing the submit key, and looking for proof.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_model::{Code, Failure, Message, Millis, Progress, Source, State};

use super::courier::{Courier, SETTLED};
use super::proof::{Place, Proof, turned};
use super::queue::{Facts, Intent};
use super::seen::Seen;
use super::typing::bytes_of;
use crate::Result;
use crate::shared::now;

/// How often the submit key is pressed at most, and how long proof is waited for after each press.
const PRESSES: [Duration; 4] = [
    Duration::from_millis(900),
    Duration::from_millis(1_500),
    Duration::from_secs(3),
    Duration::from_secs(6),
];
/// How long proof is waited for where nothing can be pressed again.
const PROOF: Duration = Duration::from_secs(12);

impl Courier {
    /// Presses the submit key, and looks for proof. The key is pressed again only while the text still stands there.
    pub(super) async fn submit(
        &mut self,
        message: &Message,
        first: &[String],
        proof: &mut Proof,
    ) -> Result<()> {
        let attention = Arc::clone(&self.typist.attention);
        let key = message.manner.submit.as_deref().unwrap_or(&attention.profile.keys.submit).to_owned();
        let key = if self.typist.handle.session().tty { bytes_of(&key)? } else { b"\n".to_vec() };
        // A key at a menu answers it: wait the question out.
        let waits = Instant::now() + Duration::from_secs(600);
        let calm = |seen: &Seen| seen.question.is_none() && seen.report.state != State::Asking;
        let Some(seen) = self.typist.until(waits, calm).await? else {
            return Err(Failure::new(
                Code::Asking,
                "a question came up before it could be submitted, and stands",
            ));
        };
        attention.intend(&message.id, Intent::Submit)?;
        if !first.is_empty() {
            self.typist.press(first).await?;
            self.typist.read().await?;
            tokio::time::sleep(SETTLED.0).await;
            self.typist.still(SETTLED.0, Instant::now() + SETTLED.1).await?;
        }
        let mut facts = Facts { attempts: 0, offset: Some(seen.offset), ..Facts::default() };
        let (submitted, pressed) = (now(), Instant::now());
        let before = seen.generation;
        for (index, patience) in PRESSES.into_iter().enumerate() {
            facts.attempts = index as u32 + 1;
            self.typist.write(&key).await?;
            let evidence = format!("the submit key was pressed ({})", facts.attempts);
            let step = Facts { attempts: facts.attempts, offset: facts.offset, ..Facts::default() };
            attention.step(&message.id, Progress::Submitted, evidence, step)?;
            let found = self.prove(message, proof, submitted, before, patience).await?;
            if let Some(evidence) = found {
                self.expect_turn(pressed).await;
                attention.step(&message.id, Progress::Confirmed, evidence, facts)?;
                return Ok(());
            }
            let seen = self.typist.look().await?;
            let again =
                proof.place(&seen) == Place::There && calm(&seen) && seen.report.state != State::Working;
            if !again {
                break;
            }
        }
        let last = self.prove(message, proof, submitted, before, PROOF / 2).await?;
        if let Some(evidence) = last {
            self.expect_turn(pressed).await;
            attention.step(&message.id, Progress::Confirmed, evidence, facts)?;
            return Ok(());
        }
        facts.code = Some(Code::Unconfirmed);
        facts.hint = Some("`wharf capture` shows the screen; it is not sent again".to_owned());
        let place = match proof.place(&*self.typist.look().await?) {
            Place::There => "the text still stands in the composer",
            Place::Gone => "the composer is empty, and the agent shows nothing",
            Place::Other => "the composer shows something else",
            Place::Unseen => "the application has read it and shows nothing",
        };
        attention.step(
            &message.id,
            Progress::Unconfirmed,
            format!("no proof that it was taken: {place}"),
            facts,
        )?;
        Ok(())
    }

    /// Lets the state say that a turn goes on before the receipt says that the message was taken: whoever waits for the
    /// one and then for rest must not find the rest of before.
    async fn expect_turn(&mut self, pressed: Instant) {
        // Only what a screen or a title says is put off by that; an end of the session is the next message's matter.
        let Ok(seen) = self.typist.look().await else { return };
        let shown = matches!(seen.report.source, Source::Screen | Source::Terminal);
        let rests = seen.report.state == State::Idle && shown;
        if self.typist.attention.expect_turn(pressed) && rests {
            let deadline = Instant::now() + SETTLED.0 * 2;
            let _ = self.typist.until(deadline, |seen| seen.report.state != State::Idle).await;
        }
    }

    /// Looks for proof for a while.
    pub(super) async fn prove(
        &mut self,
        message: &Message,
        proof: &mut Proof,
        submitted: Millis,
        before: u64,
        patience: Duration,
    ) -> Result<Option<String>> {
        let deadline = Instant::now() + patience;
        let session = self.typist.handle.session();
        loop {
            if let Some(evidence) = proof.recorded().await {
                return Ok(Some(evidence));
            }
            let prompt = self.typist.attention.prompted(submitted);
            if prompt.as_ref().is_some_and(|prompt| proof.is_prompt(prompt)) {
                return Ok(Some("the agent says that this text began its turn".to_owned()));
            }
            let pending = self.typist.pending().await?;
            let read = pending.is_none_or(|pending| pending.unread + pending.queued == 0);
            if read && (!session.tty || pending.is_some_and(|pending| pending.canonical)) {
                return Ok(Some(if session.tty {
                    "the application has read the line".to_owned()
                } else {
                    "the application has read it from its pipe".to_owned()
                }));
            }
            let seen = self.typist.look().await?;
            if let Some(evidence) = turned(&seen, submitted) {
                return Ok(Some(evidence));
            }
            if read && seen.generation != before {
                match proof.place(&seen) {
                    Place::Gone => return Ok(Some("the composer is empty again".to_owned())),
                    Place::Unseen if seen.still.elapsed() >= Duration::from_millis(40) => {
                        return Ok(Some("the application has read it and shows something new".to_owned()));
                    }
                    _ => {}
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            if self.cancelled(message)? {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
}
