//! Waits until a message may be typed, or says why it may not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_model::{ChoiceKind, Code, Failure, Message, Name, Question, Source, State, When};

use crate::Result;
use crate::deliver::courier::{Courier, TYPING_QUIET_TIME, TYPING_QUIET_TIMEOUT};
use crate::instance::shared::now;
use crate::observe::judge::Basis;
use crate::observe::seen::{OpenLine, Seen};

/// The same for a program whose states nobody knows: it may still be starting.
const UNKNOWN_QUIET_TIME: Duration = Duration::from_millis(350);
/// How long a program in raw mode may seem not to wait for input before a text is typed all the same, in milliseconds.
const RAW_MODE_MILLIS: u64 = 2_000;
/// How long after a key somebody counts as typing, in milliseconds.
const HUMAN_TYPING_MILLIS: u64 = 1_500;

impl Courier {
    /// Waits until the agent can take the message.
    pub(super) async fn ready(&mut self, message: &Message) -> Result<Arc<Seen>> {
        let mut interrupted = false;
        let mut calm_by: Option<Instant> = None;
        loop {
            let deadline = deadline(message);
            let seen = self.typist.look().await?;
            if seen.report.state == State::Working && message.manner.interrupt && !interrupted {
                interrupted = true;
                self.typist.interrupt(Duration::from_secs(10)).await?;
                continue;
            }
            let Some(obstacle) = self.obstacle(message, &seen).await else {
                let quiet = if seen.is_judged() { TYPING_QUIET_TIME } else { UNKNOWN_QUIET_TIME };
                let by = *calm_by.get_or_insert_with(|| Instant::now() + TYPING_QUIET_TIMEOUT);
                if seen.still.elapsed() >= quiet || Instant::now() >= by {
                    return Ok(seen);
                }
                let next = deadline.min(by);
                self.typist.until(next, |now| now.still.elapsed() >= quiet).await?;
                continue;
            };
            if message.manner.when == When::Now {
                return Err(obstacle);
            }
            calm_by = None;
            if self.cancelled(message) {
                return Err(Failure::new(Code::Cancelled, "it was taken back"));
            }
            if Instant::now() >= deadline {
                return Err(Failure::new(
                    Code::Expired,
                    format!("it could not be typed in time: {}", obstacle.message),
                )
                .hint(obstacle.hint.unwrap_or_else(|| "allow more time with --timeout".to_owned())));
            }
            let pause = deadline.min(Instant::now() + Duration::from_millis(500));
            let before = Arc::clone(&seen);
            self.typist
                .until(pause, |now| now.offset != before.offset || now.report != before.report)
                .await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Why the message cannot be typed now.
    pub(super) async fn obstacle(&self, message: &Message, seen: &Seen) -> Option<Failure> {
        let name = self.typist.handle.session().name.clone();
        let profile = &self.typist.observed.profile();
        let asks = |what: &str| {
            Failure::new(Code::Asking, format!("session {name} asks {what:?}, and a text would answer it"))
                .hint(format!("answer with `wharf approve {name}` or `wharf deny {name}`"))
        };
        if self.typist.handle.session().paused {
            return Some(
                Failure::new(Code::Busy, format!("session {name} is paused"))
                    .hint(format!("`wharf unpause {name}` lets it go on")),
            );
        }
        if self.typist.handle.session().suspended {
            return Some(
                Failure::new(Code::Busy, format!("the command of session {name} is stopped by a signal"))
                    .hint(format!("`wharf signal CONT {name}` lets it go on")),
            );
        }
        let rest = seen.unfinished && message.manner.over_draft;
        if let Some(question) = seen.question.as_ref().filter(|_| !rest) {
            return Some(if seen.unfinished { unfinished(&name, question) } else { asks(&question.title) });
        }
        match seen.report.state {
            State::Asking if rest => {}
            State::Asking => return Some(asks(&seen.report.evidence)),
            State::Working if self.looks_for_keys(seen).await => {}
            State::Working if !(message.manner.when == When::Now && profile.queue.while_working) => {
                return Some(
                    Failure::new(Code::Busy, format!("session {name} is working: {}", seen.report.evidence))
                        .hint("`--when idle` waits, `--interrupt` stops its turn first"),
                );
            }
            State::Starting => {
                return Some(Failure::new(Code::NotStarted, format!("session {name} is not ready yet")));
            }
            State::Unknown => {
                return Some(Failure::new(
                    Code::Unreachable,
                    format!("session {name} cannot be reached now"),
                ));
            }
            _ => {}
        }
        if message.manner.over_draft {
            return None;
        }
        if let Some(draft) = self.draft(seen).await
            && !message.manner.clear_draft
        {
            return Some(
                Failure::new(Code::Busy, format!("{draft} at session {name}"))
                    .hint("submit or delete it, or send with --clear, which deletes it"),
            );
        }
        let typing = seen.last_input.is_some_and(|at| {
            at > self.typist.observed.own_input() && now().0.saturating_sub(at.0) < HUMAN_TYPING_MILLIS
        });
        if seen.attached > 0 && typing {
            return Some(
                Failure::new(Code::Busy, format!("somebody types at session {name}"))
                    .hint("wait, or send with --now"),
            );
        }
        None
    }

    /// Whether it is a program in raw mode that nobody knows, and that has not been seen to wait for input for a while. One
    /// that looks for keys now and then is never seen so, and reads them all the same.
    async fn looks_for_keys(&self, seen: &Seen) -> bool {
        let is_guess = seen.report.source == Source::Process
            && seen.claims.iter().all(|judged| judged.basis == Basis::Reads);
        let stands = now().0.saturating_sub(seen.report.since.0) >= RAW_MODE_MILLIS;
        let raw =
            || async { self.typist.pending().await.ok().flatten().is_some_and(|pending| !pending.canonical) };
        is_guess && stands && raw().await
    }

    /// What somebody has begun and not submitted, in words.
    pub(super) async fn draft(&self, seen: &Seen) -> Option<String> {
        let short = |text: &str| text.chars().take(40).collect::<String>();
        if let Some(composer) = &seen.composer {
            return (!composer.empty)
                .then(|| format!("a draft stands in the composer: {:?}", short(&composer.text)));
        }
        if let Some(draft) = &seen.draft {
            return Some(format!("somebody has typed {:?} and not submitted it", short(draft)));
        }
        let line = seen.line?;
        let pending = self.typist.pending().await.ok().flatten()?;
        // A terminal in line mode keeps what was typed until the line ends, whatever program reads it: a program that took
        // it as a key had the terminal in another mode. Keys that nobody has read yet are on no screen.
        let in_lines = pending.canonical
            && (line == OpenLine::Kept || self.typist.observed.profile().keys.clear.is_empty());
        (in_lines || pending.unread > 0).then(|| {
            format!("somebody has typed a line and not ended it: {:?}", short(seen.before_cursor().trim()))
        })
    }

    /// Whether the message was taken back meanwhile.
    pub(super) fn cancelled(&self, message: &Message) -> bool {
        let receipts = self.typist.observed.receipts.borrow();
        let receipt =
            receipts.iter().flat_map(|all| all.iter().rev()).find(|receipt| receipt.id == message.id);
        receipt.is_none_or(|receipt| receipt.status.is_over())
    }
}

/// Why nothing is typed at the prompt for the rest of something.
fn unfinished(name: &Name, question: &Question) -> Failure {
    let message = format!(
        "session {name} waits for the rest of what was begun, at {:?}, and the message would become a part of it",
        question.title
    );
    Failure::new(Code::Asking, message).hint(ways_out(name, question))
}

/// What ends what was begun.
pub(super) fn ways_out(name: &Name, question: &Question) -> String {
    let offers = |kind| question.choices.iter().any(|choice| choice.kind == kind);
    let mut ways = Vec::new();
    if offers(ChoiceKind::Allow) {
        ways.push(format!("`wharf approve {name}` ends it"));
    }
    if offers(ChoiceKind::Deny) {
        ways.push(format!("`wharf deny {name}` gives it up"));
    }
    ways.push("`wharf send --now` adds to it".to_owned());
    ways.join(", ")
}

/// When a message may no longer be typed.
fn deadline(message: &Message) -> Instant {
    let left = message.manner.expires.map(|at| at.0.saturating_sub(now().0));
    Instant::now() + left.map_or(Duration::from_secs(24 * 3600), Duration::from_millis)
}
