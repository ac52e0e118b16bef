//! Presses the submit key and looks for proof that the message was taken.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wharf_model::{Code, Failure, Message, Millis, Progress, Question, Source, State};

use crate::Result;
use crate::deliver::courier::{Courier, SUBMIT_QUIET_TIME, SUBMIT_QUIET_TIMEOUT};
use crate::deliver::proof::{ComposerMatch, Proof, turned};
use crate::deliver::queue::{Facts, Intent};
use crate::deliver::ready::ways_out;
use crate::deliver::turn::InputTurn;
use crate::deliver::typing::{Typist, bytes_of};
use crate::instance::shared::now;
use crate::observe::seen::Seen;
use crate::session::requests::ObserverRequest;

/// How often the submit key is pressed at most, and how long proof is waited for after each press.
const PRESS_TIMEOUTS: [Duration; 4] = [
    Duration::from_millis(900),
    Duration::from_millis(1_500),
    Duration::from_secs(3),
    Duration::from_secs(6),
];
/// How long proof is waited for where nothing can be pressed again.
const PROOF_TIMEOUT: Duration = Duration::from_secs(12);
/// How long a question that came up before the submit key was pressed is waited for.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(600);
/// How long the prompt for the rest of a text may take to show once it was read.
const CONTINUATION_TIMEOUT: Duration = Duration::from_secs(1);

impl Courier {
    /// Presses the submit key, and looks for proof. The key is pressed again only while the text still stands there.
    /// The caller has the turn to type. It is let go while a question stands, because whoever answers the question needs it.
    pub(super) async fn submit(
        &mut self,
        mut turn: InputTurn,
        message: &Message,
        first: &[String],
        proof: &mut Proof,
    ) -> Result<()> {
        let observed = Arc::clone(&self.typist.observed);
        let key = message.manner.submit.as_deref().unwrap_or(&observed.profile().keys.submit).to_owned();
        let key = if self.typist.handle.session().tty { bytes_of(&key)? } else { b"\n".to_vec() };
        // A key at a menu answers it: wait the question out.
        let waits = Instant::now() + QUESTION_TIMEOUT;
        let asks = |seen: &Seen| seen.question.is_some() || seen.report.state == State::Asking;
        // A text of several lines looks like something that was begun and not ended: it is ours.
        let calm = |seen: &Seen| seen.unfinished || !asks(seen);
        let seen = loop {
            let seen = self.typist.look().await?;
            if calm(&seen) {
                break seen;
            }
            drop(turn);
            if self.typist.until(waits, calm).await?.is_none() {
                return Err(Failure::new(
                    Code::Asking,
                    "a question came up before it could be submitted, and stands",
                ));
            }
            turn = observed.input_turns.take().await?;
        };
        self.intend(&message.id, Intent::Submit).await?;
        if !first.is_empty() {
            self.typist.press(first).await?;
            self.typist.read().await?;
            tokio::time::sleep(SUBMIT_QUIET_TIME).await;
            self.typist.still(SUBMIT_QUIET_TIME, Instant::now() + SUBMIT_QUIET_TIMEOUT).await?;
        }
        let mut facts = Facts { attempts: 0, offset: Some(seen.offset), ..Facts::default() };
        let (submitted, pressed) = (now(), Instant::now());
        let before = seen.generation;
        for (index, patience) in PRESS_TIMEOUTS.into_iter().enumerate() {
            facts.attempts = index as u32 + 1;
            self.typist.write(&key).await?;
            let evidence = format!("the submit key was pressed ({})", facts.attempts);
            let step = Facts { attempts: facts.attempts, offset: facts.offset, ..Facts::default() };
            self.step(&message.id, Progress::Submitted, evidence, step).await?;
            let found = self.prove(message, proof, submitted, before, patience).await?;
            if let Some(evidence) = found {
                return self.taken(message, (pressed, before), evidence, facts).await;
            }
            let seen = self.typist.look().await?;
            let again = proof.composer_match(&seen) == ComposerMatch::Present
                && calm(&seen)
                && seen.report.state != State::Working;
            if !again {
                break;
            }
        }
        let last = self.prove(message, proof, submitted, before, PROOF_TIMEOUT / 2).await?;
        if let Some(evidence) = last {
            return self.taken(message, (pressed, before), evidence, facts).await;
        }
        facts.code = Some(Code::Unconfirmed);
        facts.hint = Some("`wharf capture` shows the screen; it is not sent again".to_owned());
        let unread = self.typist.pending().await?.is_some_and(|pending| pending.unread + pending.queued > 0);
        let place = match proof.composer_match(&*self.typist.look().await?) {
            _ if unread => "the application does not read",
            ComposerMatch::Present => "the text still stands in the composer",
            ComposerMatch::Empty => "the composer is empty, and the agent shows nothing",
            ComposerMatch::Other => "the composer shows something else",
            ComposerMatch::NoComposer => "the application has read it and shows nothing",
        };
        let evidence = format!("no proof that it was taken: {place}");
        self.step(&message.id, Progress::Unconfirmed, evidence, facts).await
    }

    /// There is proof that what stood there was taken. Where it was more than the message, nobody knows what was made of it.
    async fn taken(
        &mut self,
        message: &Message,
        (pressed, before): (Instant, u64),
        evidence: String,
        facts: Facts,
    ) -> Result<()> {
        if let Some(question) = self.left_open(pressed, before).await {
            let name = self.typist.handle.session().name.clone();
            let evidence = format!("it is not complete: its rest is waited for, at {:?}", question.title);
            let hint = Some(ways_out(&name, &question));
            let facts = Facts { code: Some(Code::Unconfirmed), hint, ..facts };
            return self.step(&message.id, Progress::Unconfirmed, evidence, facts).await;
        }
        self.expect_turn(pressed).await;
        if self.behind_draft {
            let evidence = format!("it was typed behind a draft, and both went as one: {evidence}");
            let facts = Facts { code: Some(Code::Unconfirmed), ..facts };
            self.step(&message.id, Progress::Unconfirmed, evidence, facts).await
        } else {
            self.step(&message.id, Progress::Confirmed, evidence, facts).await
        }
    }

    /// The prompt for the rest of the message, where one comes once it was read.
    async fn left_open(&mut self, pressed: Instant, before: u64) -> Option<Question> {
        if !self.typist.observed.profile().knows_continuations() {
            return None;
        }
        // The text itself may look so until the key acts: what stands there once the screen is still again counts.
        let new = |seen: &Seen| seen.looked > pressed && seen.generation != before;
        let deadline = Instant::now() + CONTINUATION_TIMEOUT;
        self.typist
            .until(deadline, |seen| new(seen) && seen.still.elapsed() >= SUBMIT_QUIET_TIME)
            .await
            .ok()?;
        let seen = self.typist.look().await.ok()?;
        seen.question.clone().filter(|_| seen.unfinished && new(&seen))
    }

    /// Lets the state say that a turn goes on before the receipt says that the message was taken: whoever waits for the
    /// one and then for rest must not find the rest of before.
    async fn expect_turn(&mut self, pressed: Instant) {
        // An end of the session is the next message's matter.
        let Ok(seen) = self.typist.look().await else { return };
        let (rests, source) = (seen.report.state == State::Idle, seen.report.source);
        let taken = Instant::now();
        let (reply, expected) = oneshot::channel();
        let expect = ObserverRequest::ExpectTurn(pressed, reply);
        let Typist { shared, handle, observed, .. } = &self.typist;
        let asked = observed.ask_observer(shared, handle, expect).await;
        if !asked || !expected.await.unwrap_or(false) || !rests {
            return;
        }
        let deadline = taken + SUBMIT_QUIET_TIME * 2;
        // What a screen or a title says is put off by that. Of processes a look that is newer than the proof tells: a
        // shell that has read a line waits for none until it has run it.
        let shown = matches!(source, Source::Screen | Source::Terminal);
        let _ = self
            .typist
            .until(deadline, |seen| seen.report.state != State::Idle || (!shown && seen.looked > taken))
            .await;
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
            if seen.prompted(submitted).is_some_and(|prompt| proof.is_prompt(prompt)) {
                return Ok(Some("the agent says that this text began its turn".to_owned()));
            }
            if let Some(evidence) = turned(&seen, submitted) {
                return Ok(Some(evidence));
            }
            if read && seen.generation != before {
                match proof.composer_match(&seen) {
                    ComposerMatch::Empty => return Ok(Some("the composer is empty again".to_owned())),
                    ComposerMatch::NoComposer if seen.still.elapsed() >= Duration::from_millis(40) => {
                        return Ok(Some("the application has read it and shows something new".to_owned()));
                    }
                    _ => {}
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            if self.cancelled(message) {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
}
