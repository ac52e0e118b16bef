//! Types a text into the composer and sees that the application has read it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_agents::Prepared;
use wharf_model::{Code, Failure, Message, Progress};

use crate::Result;
use crate::deliver::courier::{Courier, SUBMIT_QUIET_TIME, SUBMIT_QUIET_TIMEOUT};
use crate::deliver::proof::{ComposerMatch, Proof};
use crate::deliver::queue::{Facts, Intent};
use crate::deliver::typing::bytes_of;
use crate::observe::seen::Seen;

/// How long a text may take to show in the composer.
const SHOW_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest line that a terminal in canonical mode takes whole.
const MAX_CANONICAL_LINE_LEN: usize = 4_095;

/// How a text is put into a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Into the pipe that the command reads.
    ToPipe,
    /// As one paste.
    Pasted,
    /// As lines of a terminal in canonical mode: nobody reads one before it ends, and the echo is the terminal's own.
    InLines,
    /// Key by key.
    Typed,
}

impl Written {
    fn as_str(self) -> &'static str {
        match self {
            Self::ToPipe => "into its pipe",
            Self::Pasted => "in one paste",
            Self::InLines => "typed in lines",
            Self::Typed => "typed",
        }
    }

    /// What became of it, as far as was seen.
    fn echo(self, shown: bool, read: bool) -> &'static str {
        match (self, shown, read) {
            (Self::InLines, true, _) => ", shown by the terminal",
            (Self::InLines, false, _) | (_, false, false) => "",
            (_, true, true) => ", read and shown by the application",
            (_, true, false) => ", shown",
            (_, false, true) => ", read by the application",
        }
    }
}

impl Courier {
    /// Puts the text into the composer, and sees that the application has read it.
    pub(super) async fn write(
        &mut self,
        message: &Message,
        prepared: &Prepared,
        seen: &Seen,
        proof: &Proof,
    ) -> Result<()> {
        let observed = Arc::clone(&self.typist.observed);
        let (bytes, how) = self.bytes(message, prepared, seen).await?;
        self.intend(&message.id, Intent::Write).await?;
        self.typist.write(&bytes).await?;
        let read = self.typist.read().await?;
        if !read && self.typist.pending().await?.is_some() {
            return Err(Failure::new(
                Code::Unconfirmed,
                "the application stopped reading before it had all of it",
            )
            .hint("it was not submitted; `wharf capture` shows what arrived"));
        }
        let read_at = Instant::now();
        // A program that shows nothing of what it reads is not waited for long.
        let shows = if seen.composer.is_some() { SHOW_TIMEOUT } else { Duration::from_millis(600) };
        let before = seen.generation;
        let shown = self
            .typist
            .until(Instant::now() + shows, |now| match proof.composer_match(now) {
                ComposerMatch::Present => true,
                ComposerMatch::Other => now.composer.as_ref().is_some_and(|composer| !composer.empty),
                ComposerMatch::Empty => false,
                ComposerMatch::NoComposer => now.generation != before,
            })
            .await?;
        let quiet = SUBMIT_QUIET_TIME.max(Duration::from_millis(observed.profile().keys.pause));
        tokio::time::sleep_until((read_at + quiet).into()).await;
        self.typist.still(quiet, Instant::now() + SUBMIT_QUIET_TIMEOUT).await?;
        let notes = if prepared.notes.is_empty() {
            String::new()
        } else {
            format!("; {}", prepared.notes.join("; "))
        };
        let echo = how.echo(shown.is_some(), read);
        let evidence = format!("{} bytes {}{echo}{notes}", bytes.len(), how.as_str());
        self.step(&message.id, Progress::Written, evidence, Facts::default()).await
    }

    /// Deletes what somebody has begun, and sees it gone.
    pub(super) async fn clear(&mut self) -> Result<Arc<Seen>> {
        let mut keys = self.typist.observed.profile().keys.clear.clone();
        if keys.is_empty() && self.typist.pending().await?.is_some_and(|pending| pending.canonical) {
            // The terminal itself has a key for that.
            keys.push("C-u".to_owned());
        }
        let stands = |why: &str| {
            Failure::new(Code::Busy, format!("a draft stands there, and {why}")).hint("submit or delete it")
        };
        if keys.is_empty() {
            return Err(stands("no key is known that deletes it"));
        }
        self.typist.press(&keys).await?;
        self.typist.read().await?;
        let deadline = Instant::now() + SHOW_TIMEOUT;
        while Instant::now() < deadline {
            self.typist.still(SUBMIT_QUIET_TIME, deadline).await?;
            let seen = self.typist.look().await?;
            if self.draft(&seen).await.is_none() {
                return Ok(seen);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(stands(&format!("{} did not delete it", keys.join(" "))))
    }

    /// The bytes that put a text into the composer, and how they do.
    pub(super) async fn bytes(
        &self,
        message: &Message,
        prepared: &Prepared,
        seen: &Seen,
    ) -> Result<(Vec<u8>, Written)> {
        let session = self.typist.handle.session();
        let text = &prepared.text;
        if !session.tty {
            return Ok((text.clone().into_bytes(), Written::ToPipe));
        }
        if seen.paste {
            // As terminals paste: line ends are returns, and the markers keep them from submitting.
            let inner = text.replace('\n', "\r");
            return Ok((format!("\u{1b}[200~{inner}\u{1b}[201~").into_bytes(), Written::Pasted));
        }
        let canonical = self.typist.pending().await?.is_some_and(|pending| pending.canonical);
        if canonical {
            if let Some(line) = text.lines().find(|line| line.len() > MAX_CANONICAL_LINE_LEN) {
                let message = format!(
                    "a line of {} bytes cannot arrive: this terminal is in line mode and cuts lines at {MAX_CANONICAL_LINE_LEN}",
                    line.len()
                );
                return Err(
                    Failure::new(Code::Refused, message).hint("break the line, or send the name of a file")
                );
            }
            return Ok((text.clone().into_bytes(), Written::InLines));
        }
        if prepared.needs_paste && !message.manner.raw {
            let profile = self.typist.observed.profile();
            let newline = profile.keys.newline.as_deref();
            let Some(newline) = newline.filter(|_| !text.contains('\t')) else {
                return Err(Failure::new(
                    Code::Refused,
                    "the application takes no paste, and typed line breaks or tabs would submit a part or complete a word",
                )
                .hint("send one line, or with --raw to type it as it is"));
            };
            let newline = bytes_of(newline)?;
            let lines: Vec<&[u8]> = text.split('\n').map(str::as_bytes).collect();
            return Ok((lines.join(&newline[..]), Written::Typed));
        }
        Ok((text.replace('\n', "\r").into_bytes(), Written::Typed))
    }
}
