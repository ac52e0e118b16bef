use std::sync::Arc;
use std::time::SystemTime;

use wharf_agents::{Profile, Told, Transcript};
use wharf_model::{Millis, State};

use super::seen::Seen;
use super::typing::Typist;
use crate::disk;
use crate::handle::Handle;
use crate::shared::Shared;

/// How much of a text's end is looked for before the cursor.
const TAIL: usize = 24;

/// What is looked for as proof that a text was submitted.
pub(crate) struct Proof {
    /// The text as the agent itself writes it down.
    received: String,
    /// The text without white space: boxes wrap it as they like.
    packed: String,
    transcript: Option<Transcript>,
}

impl Proof {
    /// Begins to look: what the agent wrote down before is no proof.
    pub(crate) async fn begin(typist: &Typist, text: &str, since: SystemTime) -> Self {
        let profile = &typist.attention.profile;
        Self {
            received: packed(&profile.as_received(text)),
            packed: packed(text),
            transcript: transcript(&typist.shared, &typist.handle, profile, since).await,
        }
    }

    /// Whether the agent's own record has the text.
    pub(crate) async fn recorded(&mut self) -> Option<String> {
        let mut transcript = self.transcript.take()?;
        let polled = tokio::task::spawn_blocking(move || {
            let told = transcript.poll();
            (transcript, told)
        });
        let (transcript, told) = polled.await.ok()?;
        self.transcript = Some(transcript);
        let mine = |told: &Told| told.prompt().is_some_and(|prompt| self.is_prompt(prompt));
        told.iter().any(mine).then(|| "the agent's own record has it".to_owned())
    }

    /// Whether the agent said itself that this text began a turn.
    pub(crate) fn is_prompt(&self, prompt: &str) -> bool {
        packed(prompt) == self.received || packed(prompt) == self.packed
    }

    /// What the composer says of the text.
    pub(crate) fn place(&self, seen: &Seen) -> Place {
        if let Some(composer) = &seen.composer {
            return if composer.empty {
                Place::Gone
            } else if composer.collapsed || self.is_in(&composer.text) {
                Place::There
            } else {
                Place::Other
            };
        }
        let before = packed(&seen.before_cursor());
        let tail: String = {
            let count = self.packed.chars().count();
            self.packed.chars().skip(count.saturating_sub(TAIL)).collect()
        };
        if !tail.is_empty() && before.ends_with(&tail) { Place::There } else { Place::Unseen }
    }

    /// Whether a composer shows this text, or a part of it that fits.
    fn is_in(&self, shown: &str) -> bool {
        let shown = packed(shown);
        !shown.is_empty()
            && (self.packed.contains(&shown) || shown.contains(&self.packed) || {
                let tail: String =
                    shown.chars().rev().take(TAIL).collect::<Vec<_>>().into_iter().rev().collect();
                self.packed.ends_with(&tail)
            })
    }

    /// Whether a composer shows exactly this text.
    pub(crate) fn is_all(&self, shown: &str) -> bool {
        packed(shown) == self.packed
    }
}

/// Where a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the composer.
    There,
    /// The composer is empty.
    Gone,
    /// The composer holds something else.
    Other,
    /// There is no composer to look at.
    Unseen,
}

/// Begins to follow what an agent writes down by itself.
pub(crate) async fn transcript(
    shared: &Shared,
    handle: &Handle,
    profile: &Arc<Profile>,
    since: SystemTime,
) -> Option<Transcript> {
    profile.transcript.as_ref()?;
    let ticket = disk::ticket(&shared.home.session(&handle.id)).ok()??;
    let variables = shared.variables(&ticket).await.ok()?;
    let lookup = move |name: &str| {
        let found = variables.iter().rev().find(|(key, _)| key.as_bytes() == name.as_bytes());
        found.map(|(_, value)| value.lossy().into_owned())
    };
    let conversation = ticket.spec.agent.as_ref().and_then(|agent| agent.id.clone());
    Transcript::watch(profile, &lookup, ticket.spec.dir.as_path(), conversation.as_deref(), since)
}

/// What the state says of a submission at a moment.
pub(crate) fn turned(seen: &Seen, submitted: Millis) -> Option<String> {
    let report = &seen.report;
    let new = report.since >= submitted;
    (new && matches!(report.state, State::Working | State::Asking))
        .then(|| format!("{}: {}", report.state.as_str(), report.evidence))
}

/// A text without white space.
pub(crate) fn packed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}
