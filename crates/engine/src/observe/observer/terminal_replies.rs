//! Types the answers to a program's terminal queries, as long as the program that asked is still there.

use std::time::{Duration, Instant};

use wharf_agents::Seen;
use wharf_model::{Home, Offset};

use crate::observe::observer::Observer;
use crate::observe::view::FeedResult;
use crate::output::read::log_end;
use crate::platform;

/// How long an answer of the terminal may take to be typed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an answer waits for what was printed after the question to be read.
const READ_ON_TIMEOUT: Duration = Duration::from_millis(50);

/// Answers that are to be typed.
pub(super) struct PendingReplies {
    replies: Vec<u8>,
    since: Instant,
    /// Whether something was printed after the last question.
    printed: bool,
    /// Whether the alternate screen was left after it.
    left: bool,
}

impl PendingReplies {
    /// When they are typed at the latest.
    pub(super) fn due(&self) -> Instant {
        self.since + READ_ON_TIMEOUT
    }
}

impl Observer {
    /// Keeps the answers to new queries, and whether something was printed since.
    pub(super) fn collect_replies(&mut self, fed: &FeedResult) {
        let alone = self.status.typists == 0 && self.tty && self.answers;
        if !fed.replies.is_empty() && alone {
            let fresh =
                || PendingReplies { replies: Vec::new(), since: Instant::now(), printed: false, left: false };
            let pending = self.pending_replies.get_or_insert_with(fresh);
            pending.replies.extend_from_slice(&fed.replies);
            (pending.printed, pending.left) = (fed.printed, fed.left);
        } else if let Some(pending) = &mut self.pending_replies {
            pending.printed |= fed.printed;
            pending.left |= fed.left;
        }
    }

    /// Types the answers, once what was printed after the questions has been read: it tells whether whoever asked is
    /// still there.
    pub(super) async fn type_replies(&mut self, read_to: Offset) {
        let more = || log_end(&self.dir.join(Home::LOG)).is_ok_and(|end| end > read_to);
        if self
            .pending_replies
            .as_ref()
            .is_some_and(|pending| pending.since.elapsed() < READ_ON_TIMEOUT && more())
        {
            return;
        }
        let Some(pending) = self.pending_replies.take() else { return };
        let Some(connection) = self.connection.clone() else { return };
        if self.is_late(&pending) {
            tracing::debug!(session = %self.handle.id, "whoever asked the terminal has gone: no answer is typed");
            return;
        }
        let typed =
            tokio::time::timeout(ANSWER_TIMEOUT * 2, connection.write(&pending.replies, ANSWER_TIMEOUT))
                .await;
        self.observed.note_own_input();
        if !matches!(typed, Ok(Ok(()))) {
            tracing::debug!(session = %self.handle.id, "an answer of the terminal was not taken");
        }
    }

    /// Whether somebody else would read the answer: the program has left its screen, or the shell that started it has its
    /// terminal back and has printed something. A shell that asks by itself waits for the answer first, or asks before
    /// anybody has typed.
    fn is_late(&self, pending: &PendingReplies) -> bool {
        let profile = self.observed.profile();
        let is_shell = || profile.rules.values().any(|rule| rule.seen == Seen::Foreground);
        let owns = || {
            let owner = self.handle.session().pid.and_then(platform::foreground);
            owner.is_some_and(|owner| owner.own)
        };
        let typed = self.status.last_input.is_some();
        pending.left || (pending.printed && typed && is_shell() && owns())
    }
}
