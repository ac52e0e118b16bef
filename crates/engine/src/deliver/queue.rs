//! Keeps a session's messages, intents and receipts in order on disk.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_model::{Code, Failure, Manner, Message, Offset, Progress, Receipt, SessionId, Step};

use crate::Result;
use crate::instance::shared::now;
use crate::observe::journal::Journal;
use crate::observe::observed::Receipts;

/// The most that waits in one queue, and the longest text.
const MAX_WAITING: usize = 1_000;
/// The longest text that is taken.
pub(crate) const MAX_TEXT_LEN: usize = 4 << 20;
/// Receipts that are kept, and how long the file may grow before the others go.
const MAX_RECEIPTS: usize = 500;
const MAX_FILE_LEN: u64 = 16 << 20;
/// How much of a text stands in its receipt.
const SUMMARY_CHARS: usize = 72;

/// The messages of one session, in their order, on disk.
pub(crate) struct Queue {
    session: SessionId,
    journal: Journal,
    entries: Vec<Entry>,
    next: u64,
}

/// One message and what became of it.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Absent once it is over: the receipt says what is worth knowing then.
    pub(crate) message: Option<Message>,
    pub(crate) receipt: Arc<Receipt>,
    key: Option<String>,
    /// What was about to be done when this was last written.
    pub(crate) intent: Option<Intent>,
}

/// What is about to be done to the terminal. It is on disk before it is done, so that nothing is done twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Intent {
    /// The text is typed.
    Write,
    /// The submit key is pressed.
    Submit,
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Message(Message),
    Intent {
        id: String,
        intent: Intent,
    },
    Step {
        id: String,
        step: Step,
        attempts: u32,
        #[serde(default)]
        code: Option<Code>,
        #[serde(default)]
        hint: Option<String>,
        #[serde(default)]
        offset: Option<Offset>,
    },
    /// A message that is over, when the journal was made shorter.
    Kept {
        receipt: Receipt,
        key: Option<String>,
    },
}

/// What a step brings along.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) attempts: u32,
    pub(crate) code: Option<Code>,
    pub(crate) hint: Option<String>,
    pub(crate) offset: Option<Offset>,
}

impl Queue {
    pub(crate) fn open(path: &Path, session: &SessionId) -> Result<Self> {
        let (journal, lines) = Journal::open::<Line>(path)?;
        let mut queue = Self { session: session.clone(), journal, entries: Vec::new(), next: 1 };
        for line in lines {
            queue.apply(line);
        }
        if queue.journal.length() > MAX_FILE_LEN {
            queue.shorten()?;
        }
        Ok(queue)
    }

    /// Takes a message, on disk before this returns. One with a key that is known is the one that was taken before.
    pub(crate) fn accept(&mut self, text: String, manner: Manner) -> Result<Receipt> {
        if let Some(key) = &manner.key
            && let Some(known) = self.entries.iter().find(|entry| entry.key.as_ref() == Some(key))
        {
            return Ok(Receipt::clone(&known.receipt));
        }
        if text.len() > MAX_TEXT_LEN {
            let message = format!("the message has {} bytes, and {MAX_TEXT_LEN} are the most", text.len());
            return Err(Failure::new(Code::TooLong, message).hint("put it into a file and send its name"));
        }
        if self.entries.iter().filter(|entry| !entry.receipt.status.is_over()).count() >= MAX_WAITING {
            return Err(Failure::new(Code::Busy, format!("{MAX_WAITING} messages wait already"))
                .hint("`wharf messages` lists them, `wharf cancel` takes one back"));
        }
        let id = format!("{}.{}", self.session, self.next);
        let message = Message { id, session: self.session.clone(), text, manner, created: now() };
        let line = Line::Message(message);
        self.journal.append(&line)?;
        self.journal.sync()?;
        self.apply(line);
        Ok(Receipt::clone(&self.entries.last().expect("it was just added").receipt))
    }

    /// Says what is about to be done, on disk before it is done. The first word of it outlives a power cut as the message
    /// does: what may have been typed is not typed again at a conversation that goes on afterwards.
    pub(crate) fn intend(&mut self, id: &str, intent: Intent) -> Result<()> {
        let line = Line::Intent { id: id.to_owned(), intent };
        self.journal.append(&line)?;
        if intent == Intent::Write {
            self.journal.sync()?;
        }
        self.apply(line);
        Ok(())
    }

    /// Moves a message on. A step that cannot be written counts all the same: it has happened.
    pub(crate) fn step(&mut self, id: &str, status: Progress, evidence: String, facts: Facts) -> Receipt {
        let Facts { attempts, code, hint, offset } = facts;
        let step = Step { status, at: now(), evidence };
        let line = Line::Step { id: id.to_owned(), step, attempts, code, hint, offset };
        if let Err(failure) = self.journal.append(&line) {
            tracing::warn!(id, %failure, "a step of a message is not on disk");
        }
        self.apply(line);
        // It may be forgotten below: old ones are.
        let receipt = self.entry(id).map(|entry| Receipt::clone(&entry.receipt));
        if self.journal.length() > MAX_FILE_LEN
            && let Err(failure) = self.shorten()
        {
            tracing::warn!(%failure, "the messages' journal was not made shorter");
        }
        receipt.expect("only known messages move on")
    }

    pub(crate) fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.receipt.id == id)
    }

    /// The oldest message that is not over.
    pub(crate) fn first(&self) -> Option<Entry> {
        self.entries.iter().find(|entry| !entry.receipt.status.is_over()).cloned()
    }

    pub(crate) fn receipts(&self) -> Receipts {
        self.entries.iter().map(|entry| Arc::clone(&entry.receipt)).collect()
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::Message(message) => {
                self.count(&message.id);
                let key = message.manner.key.clone();
                self.entries.push(Entry {
                    receipt: Arc::new(accepted(&message)),
                    key,
                    message: Some(message),
                    intent: None,
                });
            }
            Line::Kept { receipt, key } => {
                self.count(&receipt.id);
                let receipt = Arc::new(receipt);
                self.entries.push(Entry { message: None, receipt, key, intent: None });
            }
            Line::Intent { id, intent } => {
                if let Some(entry) = self.entry_mut(&id) {
                    entry.intent = Some(intent);
                }
            }
            Line::Step { id, step, attempts, code, hint, offset } => {
                let Some(entry) = self.entry_mut(&id) else { return };
                let receipt = Arc::make_mut(&mut entry.receipt);
                (receipt.status, receipt.evidence) = (step.status, step.evidence.clone());
                receipt.attempts = receipt.attempts.max(attempts);
                (receipt.code, receipt.hint) = (code, hint);
                receipt.offset = offset.or(receipt.offset);
                receipt.steps.push(step);
                if receipt.status.is_over() {
                    entry.message = None;
                }
            }
        }
    }

    fn count(&mut self, id: &str) {
        let number = id.rsplit('.').next().and_then(|number| number.parse::<u64>().ok());
        self.next = self.next.max(number.unwrap_or(0) + 1);
    }

    fn entry_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().rev().find(|entry| entry.receipt.id == id)
    }

    /// Forgets old receipts and the texts of all that is over.
    fn shorten(&mut self) -> Result<()> {
        let over = self.entries.iter().filter(|entry| entry.receipt.status.is_over()).count();
        let mut spare = over.saturating_sub(MAX_RECEIPTS);
        let mut lines = Vec::new();
        self.entries.retain(|entry| {
            let old = entry.receipt.status.is_over() && spare > 0;
            spare -= usize::from(old);
            !old
        });
        for entry in &self.entries {
            match &entry.message {
                None => {
                    let receipt = Receipt::clone(&entry.receipt);
                    lines.push(Line::Kept { receipt, key: entry.key.clone() });
                }
                Some(message) => {
                    lines.push(Line::Message(message.clone()));
                    let id = message.id.clone();
                    lines.extend(entry.intent.map(|intent| Line::Intent { id: id.clone(), intent }));
                    lines.extend(entry.receipt.steps.iter().skip(1).map(|step| Line::Step {
                        id: id.clone(),
                        step: step.clone(),
                        attempts: entry.receipt.attempts,
                        code: None,
                        hint: None,
                        offset: entry.receipt.offset,
                    }));
                }
            }
        }
        self.journal.replace(&lines)
    }
}

fn accepted(message: &Message) -> Receipt {
    let evidence = "in the queue, on disk".to_owned();
    let line = message.text.lines().next().unwrap_or_default();
    let mut summary: String = line.chars().filter(|c| !c.is_control()).take(SUMMARY_CHARS).collect();
    if summary.len() < message.text.trim_end().len() {
        summary.push('…');
    }
    Receipt {
        id: message.id.clone(),
        session: message.session.clone(),
        status: Progress::Accepted,
        evidence: evidence.clone(),
        attempts: 0,
        code: None,
        hint: None,
        steps: vec![Step { status: Progress::Accepted, at: message.created, evidence }],
        created: message.created,
        offset: None,
        length: message.text.len() as u64,
        summary,
    }
}

#[cfg(test)]
mod tests {
    use wharf_model::Millis;

    use super::*;

    fn queue(dir: &Path) -> Queue {
        Queue::open(&dir.join("messages"), &SessionId::new(Millis(1), 1)).unwrap()
    }

    fn accept(queue: &mut Queue, text: &str, key: Option<&str>) -> Receipt {
        let manner = Manner { key: key.map(str::to_owned), ..Manner::default() };
        queue.accept(text.to_owned(), manner).unwrap()
    }

    #[test]
    fn a_queue_is_what_it_was_after_a_new_start() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = queue(dir.path());
        let a = accept(&mut first, "one\ntwo", Some("k"));
        let b = accept(&mut first, "three", None);
        assert_eq!((a.summary.as_str(), b.summary.as_str()), ("one…", "three"));
        assert!(first.journal.is_synced(), "a message is on disk before it is taken");
        first.intend(&a.id, Intent::Write).unwrap();
        assert!(first.journal.is_synced(), "it is on disk that it may be typed, before it is");
        first.step(&a.id, Progress::Written, "read".into(), Facts::default());
        drop(first);
        let mut second = queue(dir.path());
        let next = second.first().unwrap();
        assert_eq!((next.receipt.id.as_str(), next.intent), (a.id.as_str(), Some(Intent::Write)));
        assert_eq!(next.message.unwrap().text, "one\ntwo");
        assert_eq!(
            accept(&mut second, "other", Some("k")).id,
            a.id,
            "a key that is known is the first message"
        );
        let facts = Facts { attempts: 2, ..Facts::default() };
        let receipt = second.step(&a.id, Progress::Confirmed, "proof".into(), facts);
        assert_eq!((receipt.attempts, receipt.steps.len()), (2, 3));
        assert_eq!(second.first().unwrap().receipt.id, b.id);
        assert_eq!(accept(&mut queue(dir.path()), "four", None).id, format!("{}.3", a.session));
    }

    #[test]
    fn what_is_over_is_forgotten_when_it_grows_too_long() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = queue(dir.path());
        let large = "x".repeat(3 << 20);
        for round in 0..8 {
            let receipt = accept(&mut first, &large, Some(&format!("k{round}")));
            first.step(&receipt.id, Progress::Confirmed, "proof".into(), Facts::default());
        }
        let waiting = accept(&mut first, "last", None);
        assert!(first.journal.length() < MAX_FILE_LEN);
        let second = queue(dir.path());
        assert_eq!(second.receipts(), first.receipts());
        assert_eq!(second.first().unwrap().receipt.id, waiting.id);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut queue = queue(dir.path());
        let long = queue.accept("x".repeat(MAX_TEXT_LEN + 1), Manner::default()).unwrap_err();
        assert_eq!(long.code, Code::TooLong);
    }
}
