//! Defines what is seen of a session at one moment: state, screen, composer, question.

use std::sync::Arc;
use std::time::Instant;

use wharf_agents::{Composer, Look};
use wharf_model::{Explanation, Millis, Offset, Question, Report};

use crate::observe::judge::JudgedClaim;

/// Who owns a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Foreground {
    /// Whether it is the session's own command, and no child that it waits for.
    pub(crate) own: bool,
    /// Whether the owner waits for input from its terminal, where that can be seen.
    pub(crate) reads: Option<bool>,
}

/// A line that was begun and not submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenLine {
    /// Keys were typed that a program may have taken.
    Keys,
    /// The terminal itself keeps something of it: it was in line mode, and no program takes keys then.
    Kept,
}

/// What an observer publishes.
#[derive(Debug, Clone)]
pub(crate) enum Sight {
    /// Nothing was seen yet, or the observer sleeps.
    Nothing,
    /// What was seen last.
    Seen(Arc<Seen>),
    /// Its log cannot be read: whoever waits to see something stops waiting.
    Unreadable,
}

impl Sight {
    pub(crate) fn seen(&self) -> Option<&Arc<Seen>> {
        match self {
            Self::Seen(seen) => Some(seen),
            Self::Nothing | Self::Unreadable => None,
        }
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable)
    }
}

/// What is seen of a session at one moment: whoever types looks at this first.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Everything before this place in the log is in it.
    pub(crate) offset: Offset,
    /// Grows whenever the screen shows something else.
    pub(crate) generation: u64,
    /// Since when the screen has been still.
    pub(crate) still: Instant,
    /// When this was seen.
    pub(crate) looked: Instant,
    pub(crate) rows: Vec<String>,
    pub(crate) cursor: (usize, usize),
    /// Whether the application takes a paste as one piece.
    pub(crate) paste: bool,
    pub(crate) composer: Option<Composer>,
    /// What somebody else has typed after the prompt, where there is no composer to look at.
    pub(crate) draft: Option<String>,
    pub(crate) question: Option<Question>,
    /// Whether that is no question, but the prompt for the rest of what was begun.
    pub(crate) unfinished: bool,
    /// The row that says that the last turn failed.
    pub(crate) failed: Option<String>,
    pub(crate) report: Report,
    pub(crate) claims: Vec<JudgedClaim>,
    /// Whether the sources agree on the state that is reported.
    pub(crate) settled: bool,
    pub(crate) decided: String,
    pub(crate) attached: u32,
    pub(crate) last_input: Option<Millis>,
    /// The line that somebody began and did not submit, as far as keys tell.
    pub(crate) line: Option<OpenLine>,
    /// The prompt that the agent itself said began its turn, and when.
    pub(crate) prompt: Option<(Millis, Arc<str>)>,
}

impl Seen {
    /// Whether there is a rule or signal that tells this session's states.
    pub(crate) fn is_judged(&self) -> bool {
        !self.claims.is_empty()
    }

    /// The prompt that the agent said began a turn after a moment.
    pub(crate) fn prompted(&self, after: Millis) -> Option<&str> {
        self.prompt.as_ref().filter(|(at, _)| *at >= after).map(|(_, prompt)| &**prompt)
    }

    /// Why it is in its state.
    pub(crate) fn explain(&self, profile: &str) -> Explanation {
        Explanation {
            report: self.report.clone(),
            decided: self.decided.clone(),
            claims: self.claims.iter().map(|judged| judged.claim.clone()).collect(),
            profile: profile.to_owned(),
            composer: self.composer.as_ref().map(|composer| composer.text.clone()),
            switched_off: Vec::new(),
        }
    }

    /// The text before the cursor, in its row.
    pub(crate) fn before_cursor(&self) -> String {
        let row = self.rows.get(self.cursor.0).map_or("", String::as_str);
        row.chars().take(self.cursor.1).collect()
    }
}

/// What stands on a screen and what the terminal said, as profiles look at it.
pub(crate) struct ProfileInput {
    pub(crate) rows: Vec<String>,
    pub(crate) cursor: (usize, usize),
    pub(crate) title: String,
    pub(crate) alternate: bool,
    pub(crate) paste: bool,
    pub(crate) progress: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) shell_phase: Option<String>,
}

impl ProfileInput {
    pub(crate) fn look(&self, foreground: Option<Foreground>) -> Look<'_> {
        Look {
            rows: &self.rows,
            cursor: self.cursor,
            title: &self.title,
            alternate: self.alternate,
            progress: self.progress.as_deref(),
            status: self.status.as_deref(),
            shell_phase: self.shell_phase.as_deref(),
            // A command that owns its terminal and does not wait for input runs words of its own.
            foreground: foreground.map(|foreground| foreground.own && foreground.reads != Some(false)),
        }
    }
}
