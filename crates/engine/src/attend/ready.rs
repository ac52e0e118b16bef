//! When a message may be typed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_model::{Code, Failure, Message, State, When};

use super::attention::lock;
use super::courier::{CALM, Courier};
use super::seen::Seen;
use crate::Result;
use crate::shared::now;

/// The same for a program whose states nobody knows: it may still be starting.
const CALM_UNKNOWN: Duration = Duration::from_millis(350);
/// How long after a key somebody counts as typing, in milliseconds.
const HUMAN: u64 = 1_500;

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
            let Some(obstacle) = self.obstacle(message, &seen) else {
                let quiet = if seen.is_judged() { CALM.0 } else { CALM_UNKNOWN };
                let by = *calm_by.get_or_insert_with(|| Instant::now() + CALM.1);
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
            let cancelled = self.cancelled(message)?;
            if cancelled {
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
    pub(super) fn obstacle(&self, message: &Message, seen: &Seen) -> Option<Failure> {
        let name = self.typist.handle.session().name.clone();
        let profile = &self.typist.attention.profile;
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
        if let Some(question) = &seen.question {
            return Some(asks(&question.title));
        }
        match seen.report.state {
            State::Asking => return Some(asks(&seen.report.evidence)),
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
        if let Some(composer) = &seen.composer
            && !composer.empty
        {
            let draft: String = composer.text.chars().take(40).collect();
            return Some(
                Failure::new(Code::Busy, format!("a draft stands in the composer of {name}: {draft:?}"))
                    .hint("submit or delete it, or send with --now"),
            );
        }
        if let Some(draft) = &seen.draft {
            let draft: String = draft.chars().take(40).collect();
            return Some(
                Failure::new(Code::Busy, format!("somebody has typed {draft:?} at session {name}"))
                    .hint("submit or delete it, or send with --now"),
            );
        }
        let typing = seen.last_input.is_some_and(|at| {
            at > *lock(&self.typist.attention.typed) && now().0.saturating_sub(at.0) < HUMAN
        });
        if seen.attached > 0 && typing {
            return Some(
                Failure::new(Code::Busy, format!("somebody types at session {name}"))
                    .hint("wait, or send with --now"),
            );
        }
        None
    }

    pub(super) fn cancelled(&self, message: &Message) -> Result<bool> {
        let entry = self.typist.attention.entry(&message.id)?;
        Ok(entry.is_none_or(|entry| entry.receipt.status.is_over()))
    }
}

/// When a message may no longer be typed.
fn deadline(message: &Message) -> Instant {
    let left = message.manner.expires.map(|at| at.0.saturating_sub(now().0));
    Instant::now() + left.map_or(Duration::from_secs(24 * 3600), Duration::from_millis)
}
