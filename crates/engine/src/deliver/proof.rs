//! Looks for proof that a message was submitted: transcript, hooks, composer, state.

use std::time::SystemTime;

use wharf_agents::{AgentTranscript, Told};
use wharf_model::{Millis, Source, State};

use wharf_backend::Beside;

use crate::deliver::typing::Typist;
use crate::instance::disk;
use crate::instance::shared::Shared;
use crate::observe::judge::{Basis, JudgedClaim};
use crate::observe::observed::Observed;
use crate::observe::seen::Seen;
use crate::session::handle::Handle;

/// What is looked at, as errors call it.
pub(crate) const RECORD: &str = "what the agent writes down";

/// How much of a text's end is looked for before the cursor.
const TAIL_CHARS: usize = 24;

/// What is looked for as proof that a text was submitted.
pub(crate) struct Proof {
    /// The text as the agent itself writes it down.
    received: String,
    /// The text without white space: boxes wrap it as they like.
    packed: String,
    transcript: Option<AgentTranscript>,
    reads: Beside,
}

impl Proof {
    /// Begins to look: what the agent wrote down before is no proof.
    pub(crate) async fn begin(typist: &Typist, text: &str, since: SystemTime) -> Self {
        let profile = &typist.observed.profile();
        Self {
            received: packed(&profile.as_received(text)),
            packed: packed(text),
            transcript: transcript(&typist.shared, &typist.handle, &typist.observed, since).await,
            reads: typist.observed.record_reads.clone(),
        }
    }

    /// Whether the agent's own record has the text.
    pub(crate) async fn recorded(&mut self) -> Option<String> {
        let mut transcript = self.transcript.take()?;
        let polled = self.reads.look(RECORD, move || {
            let told = transcript.poll();
            (transcript, told)
        });
        // One that is too late is not asked again: the screen is looked at as well.
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
    pub(crate) fn composer_match(&self, seen: &Seen) -> ComposerMatch {
        if let Some(composer) = &seen.composer {
            return if composer.empty {
                ComposerMatch::Empty
            } else if composer.collapsed || self.is_in(&composer.text) {
                ComposerMatch::Present
            } else {
                ComposerMatch::Other
            };
        }
        let before = packed(&seen.before_cursor());
        let tail: String = {
            let count = self.packed.chars().count();
            self.packed.chars().skip(count.saturating_sub(TAIL_CHARS)).collect()
        };
        if !tail.is_empty() && before.ends_with(&tail) {
            ComposerMatch::Present
        } else {
            ComposerMatch::NoComposer
        }
    }

    /// Whether a composer shows this text, or a part of it that fits.
    fn is_in(&self, shown: &str) -> bool {
        let shown = packed(shown);
        !shown.is_empty()
            && (self.packed.contains(&shown) || shown.contains(&self.packed) || {
                let tail: String =
                    shown.chars().rev().take(TAIL_CHARS).collect::<Vec<_>>().into_iter().rev().collect();
                self.packed.ends_with(&tail)
            })
    }

    /// Whether a composer shows exactly this text.
    pub(crate) fn is_all(&self, shown: &str) -> bool {
        packed(shown) == self.packed
    }
}

/// What the composer shows of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComposerMatch {
    /// In the composer.
    Present,
    /// The composer is empty.
    Empty,
    /// The composer holds something else.
    Other,
    /// There is no composer to look at.
    NoComposer,
}

/// Begins to follow what an agent writes down by itself.
pub(crate) async fn transcript(
    shared: &Shared,
    handle: &Handle,
    observed: &Observed,
    since: SystemTime,
) -> Option<AgentTranscript> {
    let profile = observed.profile();
    profile.transcript.as_ref()?;
    let ticket = disk::ticket(&shared.home.session(&handle.id)).ok()??;
    let variables = shared.variables(&ticket).await.ok()?;
    let watch = move || {
        let lookup = |name: &str| {
            let found = variables.iter().rev().find(|(key, _)| key.as_bytes() == name.as_bytes());
            found.map(|(_, value)| value.lossy().into_owned())
        };
        let conversation = ticket.spec.agent.as_ref().and_then(|agent| agent.id.as_deref());
        AgentTranscript::watch(&profile, &lookup, ticket.spec.dir.as_path(), conversation, since)
    };
    observed.record_reads.look(RECORD, watch).await.ok().flatten()
}

/// What the state says of a submission at a moment.
pub(crate) fn turned(seen: &Seen, submitted: Millis) -> Option<String> {
    let report = &seen.report;
    // Any key wakes a program that waits for input: that it does not wait any more says nothing of what it made of one.
    let tells = |judged: &JudgedClaim| judged.claim.source == Source::Process && judged.basis == Basis::Rule;
    let woke = report.source == Source::Process && !seen.claims.iter().any(tells);
    let new = report.since >= submitted && !woke;
    (new && matches!(report.state, State::Working | State::Asking))
        .then(|| format!("{}: {}", report.state.as_str(), report.evidence))
}

/// A text without white space.
pub(crate) fn packed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}
