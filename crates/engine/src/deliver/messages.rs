//! Sends messages, waits for receipts, answers questions and asks agents.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use wharf_agents::Told;
pub use wharf_model::Await;
use wharf_model::{
    Answered, Code, Failure, Interrupted, Manner, Progress, Question, Receipt, Reply, SessionId, State,
};

use crate::Result;
use crate::deliver::proof::{RECORD, packed, transcript};
use crate::deliver::typing::Typist;
use crate::instance::engine::Engine;
use crate::observe::observed::{Observed, Receipts};
use crate::session::calls::connected;
use crate::session::handle::Handle;
use crate::session::requests::CourierRequest;
use crate::session::session_handle::SessionHandle;

/// How a question is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes: the choice with this number or label, or the plain yes.
    Approve(Option<String>),
    /// No.
    Deny,
}

/// How long an agent's own record may take to have what its screen shows.
const RECORD_TIMEOUT: Duration = Duration::from_secs(3);

impl Engine {
    /// The session that a message was sent to.
    pub async fn session_of_message(&self, id: &str) -> Result<SessionHandle> {
        let session = session_of(id).ok_or_else(|| unknown(id))?;
        self.session(session.as_str()).await
    }
}

/// The session of a message's id.
fn session_of(id: &str) -> Option<SessionId> {
    id.rsplit_once('.').and_then(|(session, _)| session.parse().ok())
}

/// What is said to a session.
impl SessionHandle {
    /// Puts a message into a session's queue. It is on disk when this returns; the receipt says what becomes of it.
    pub async fn send(&self, text: impl Into<String>, manner: Manner) -> Result<Receipt> {
        let (text, handle) = (text.into(), self.entry().await?);
        let session = handle.session();
        if session.state.is_over() {
            return Err(Failure::new(Code::Ended, format!("session {} has ended", session.name))
                .hint(format!("`wharf restart {}` starts it again", session.name)));
        }
        if let Some(submit) = &manner.submit {
            wharf_model::key_bytes(submit).map_err(|error| Failure::new(Code::Invalid, error.to_string()))?;
        }
        let observed = self.engine.shared.observed(&handle);
        let ask = |reply| CourierRequest::Accept(text, Box::new(manner), reply);
        observed.ask_courier(&self.engine.shared, &handle, ask).await
    }

    /// What became of a message.
    pub async fn receipt(&self, id: &str) -> Result<Receipt> {
        let (handle, observed) = self.of_message(id).await?;
        let receipts = observed.receipts(&self.engine.shared, &handle).await?;
        receipt_of(&receipts, id)
    }

    /// Waits for a message: until it has come as far as is asked, or is over.
    pub async fn await_receipt(&self, id: &str, how: Await, within: Duration) -> Result<Receipt> {
        let (handle, observed) = self.of_message(id).await?;
        let deadline = Instant::now() + within;
        let mut changes = observed.receipts.subscribe();
        let receipt = loop {
            changes.borrow_and_update();
            let receipt = receipt_of(&observed.receipts(&self.engine.shared, &handle).await?, id)?;
            let far = match how {
                Await::Accepted => true,
                Await::Submitted => matches!(receipt.status, Progress::Submitted),
                Await::Confirmed | Await::Idle => false,
            };
            if far || receipt.status.is_over() {
                break receipt;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.engine.shared.closed() => {
                    return Err(Failure::new(Code::Unreachable, "the engine is closing; the message stays queued"));
                }
                () = tokio::time::sleep_until(deadline.into()) => {
                    return Err(Failure::new(
                        Code::Timeout,
                        format!("message {id} was {} after {within:?}: {}", receipt.status.as_str(), receipt.evidence),
                    )
                    .hint("`wharf messages` shows what becomes of it"));
                }
            }
        };
        if how == Await::Idle && receipt.status == Progress::Confirmed {
            self.rested(&handle, &observed, deadline).await?;
        }
        Ok(receipt)
    }

    /// Every message of a session that is remembered, the oldest first.
    pub async fn messages(&self) -> Result<Vec<Receipt>> {
        let handle = self.entry().await?;
        let receipts = self.engine.shared.observed(&handle).receipts(&self.engine.shared, &handle).await?;
        Ok(receipts.iter().map(|receipt| Receipt::clone(receipt)).collect())
    }

    /// Takes a message back that was not typed yet.
    pub async fn cancel(&self, id: &str) -> Result<Receipt> {
        let (handle, observed) = self.of_message(id).await?;
        let ask = |reply| CourierRequest::Cancel(id.to_owned(), reply);
        observed.ask_courier(&self.engine.shared, &handle, ask).await?.ok_or_else(|| unknown(id))
    }

    /// Stops the agent's turn by what its profile says does that, and proves it.
    pub async fn interrupt(&self, within: Duration) -> Result<Interrupted> {
        self.typist().await?.interrupt(within).await
    }

    /// Presses keys, as they are.
    pub async fn press(&self, keys: &[String]) -> Result<()> {
        self.typist().await?.press(keys).await
    }

    /// What a session asks now.
    pub async fn question(&self) -> Result<Option<Question>> {
        Ok(self.typist().await?.look().await?.question.clone())
    }

    /// Answers what a session asks, and sees the question go.
    pub async fn answer(&self, answer: Answer, within: Duration) -> Result<Answered> {
        self.typist().await?.answer(&answer, within).await
    }

    /// Sends a message, waits for the end of the turn, and returns what the agent answered.
    pub async fn ask(&self, text: impl Into<String>, manner: Manner, within: Duration) -> Result<Reply> {
        let (text, deadline) = (text.into(), Instant::now() + within);
        let mut typist = self.typist().await?;
        let mut record =
            transcript(&typist.shared, &typist.handle, &typist.observed, SystemTime::now()).await;
        let sent = self.send(text.as_str(), manner).await?;
        let receipt = self.await_receipt(&sent.id, Await::Idle, within).await?;
        if receipt.status != Progress::Confirmed {
            let code = receipt.code.unwrap_or(Code::Unconfirmed);
            let failure = Failure::new(
                code,
                format!("the message was {}: {}", receipt.status.as_str(), receipt.evidence),
            );
            return Err(match &receipt.hint {
                Some(hint) => failure.hint(hint.clone()),
                None => failure,
            });
        }
        let received = packed(&typist.observed.profile().as_received(&text));
        let mut told = Vec::new();
        // A record is written a moment after the screen.
        let late = deadline.min(Instant::now() + RECORD_TIMEOUT);
        while let Some(mut found) = record.take() {
            let polled = typist.observed.record_reads.look(RECORD, move || {
                let told = found.poll();
                (found, told)
            });
            let Ok((found, new)) = polled.await else { break };
            record = Some(found);
            told.extend(new);
            if let Some(text) = answered(&told, &received) {
                return Ok(Reply { text, source: "agent".to_owned(), receipt });
            }
            if Instant::now() >= late {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut lines = self.capture(wharf_screen::What::All, wharf_screen::Format::Plain).await?;
        if let Some(seen) = typist.look().await.ok().filter(|seen| seen.composer.is_none()) {
            // What stands before the cursor is the next prompt, and no answer.
            let end = lines.trim_end().strip_suffix(seen.before_cursor().trim_end()).map(str::len);
            lines.truncate(end.unwrap_or(lines.len()));
        }
        Ok(Reply {
            text: typist.observed.profile().answer_on(&lines, &text),
            source: "screen".to_owned(),
            receipt,
        })
    }

    /// Waits until the turn that a message began has ended.
    async fn rested(&self, handle: &Arc<Handle>, observed: &Arc<Observed>, deadline: Instant) -> Result<()> {
        let mut typist = Typist::new(&self.engine.shared, handle, observed);
        let name = handle.session().name.clone();
        // The turn may take a moment to show.
        let begun = Instant::now() + Duration::from_millis(1_500);
        let working = |state| matches!(state, State::Working | State::Asking);
        typist.until(deadline.min(begun), |seen| working(seen.report.state)).await?;
        let rests = |seen: &crate::observe::seen::Seen| match seen.report.state {
            State::Idle => true,
            State::Working | State::Asking | State::Starting | State::Unknown => false,
            // Nobody can tell: what is still has ended.
            _ => seen.still.elapsed() > Duration::from_secs(1),
        };
        let met = typist.until(deadline, rests).await?;
        met.map(drop).ok_or_else(|| {
            Failure::new(Code::Timeout, format!("session {name} did not come to rest in time"))
                .hint(format!("`wharf explain {name}` says what it is doing"))
        })
    }

    /// Looks at and types into a session that can be reached now.
    pub(crate) async fn typist(&self) -> Result<Typist> {
        let handle = self.entry().await?;
        connected(&handle)?;
        let observed = self.engine.shared.observed(&handle);
        Ok(Typist::new(&self.engine.shared, &handle, &observed))
    }

    async fn of_message(&self, id: &str) -> Result<(Arc<Handle>, Arc<Observed>)> {
        if session_of(id).as_ref() != Some(&self.id) {
            return Err(unknown(id));
        }
        let handle = self.entry().await?;
        let observed = self.engine.shared.observed(&handle);
        Ok((handle, observed))
    }
}

/// What an agent answered to a message, by its own record.
fn answered(told: &[Told], received: &str) -> Option<String> {
    let asked =
        told.iter().rposition(|told| told.prompt().is_some_and(|prompt| packed(prompt) == received))?;
    let parts: Vec<&str> = told[asked..].iter().filter_map(Told::answer).map(str::trim).collect();
    let mut text = Vec::new();
    for part in parts {
        // The end of a turn repeats its last part.
        if !part.is_empty() && text.last() != Some(&part) {
            text.push(part);
        }
    }
    (!text.is_empty()).then(|| text.join("\n\n"))
}

fn receipt_of(receipts: &Receipts, id: &str) -> Result<Receipt> {
    let found = receipts.iter().rev().find(|receipt| receipt.id == id);
    found.map(|receipt| Receipt::clone(receipt)).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no message {id:?}"))
        .hint("`wharf messages NAME` lists a session's messages")
}
