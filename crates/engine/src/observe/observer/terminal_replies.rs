//! Answering what programs ask their terminal, as long as whoever asked is there.

use std::time::{Duration, Instant};

use wharf_agents::Seen;
use wharf_model::{Home, Offset};

use crate::observe::observer::Attendant;
use crate::observe::view::News;
use crate::output::read::log_end;
use crate::platform;

/// How long an answer of the terminal may take to be typed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an answer waits for what was printed after the question to be read.
const READ_ON_TIMEOUT: Duration = Duration::from_millis(50);

/// Answers that are to be typed.
pub(super) struct Owed {
    replies: Vec<u8>,
    since: Instant,
    /// Whether something was printed after the last question.
    printed: bool,
    /// Whether the alternate screen was left after it.
    left: bool,
}

impl Owed {
    /// When they are typed at the latest.
    pub(super) fn due(&self) -> Instant {
        self.since + READ_ON_TIMEOUT
    }
}

impl Attendant {
    /// Takes what was asked, and what was printed since.
    pub(super) fn owe(&mut self, news: &News) {
        let alone = self.status.typists == 0 && self.tty && self.answers;
        if !news.replies.is_empty() && alone {
            let fresh = || Owed { replies: Vec::new(), since: Instant::now(), printed: false, left: false };
            let owed = self.owed.get_or_insert_with(fresh);
            owed.replies.extend_from_slice(&news.replies);
            (owed.printed, owed.left) = (news.printed, news.left);
        } else if let Some(owed) = &mut self.owed {
            owed.printed |= news.printed;
            owed.left |= news.left;
        }
    }

    /// Types the answers, once what was printed after the questions has been read: it tells whether whoever asked is
    /// still there.
    pub(super) async fn pay(&mut self, read_to: Offset) {
        let more = || log_end(&self.dir.join(Home::LOG)).is_ok_and(|end| end > read_to);
        if self.owed.as_ref().is_some_and(|owed| owed.since.elapsed() < READ_ON_TIMEOUT && more()) {
            return;
        }
        let Some(owed) = self.owed.take() else { return };
        let Some(connection) = self.connection.clone() else { return };
        if self.is_late(&owed) {
            tracing::debug!(session = %self.handle.id, "whoever asked the terminal has gone: no answer is typed");
            return;
        }
        let typed =
            tokio::time::timeout(ANSWER_TIMEOUT * 2, connection.write(&owed.replies, ANSWER_TIMEOUT)).await;
        self.attention.typed_now();
        if !matches!(typed, Ok(Ok(()))) {
            tracing::debug!(session = %self.handle.id, "an answer of the terminal was not taken");
        }
    }

    /// Whether somebody else would read the answer: the program has left its screen, or the shell that started it has its
    /// terminal back and has printed something. A shell that asks by itself waits for the answer first, or asks before
    /// anybody has typed.
    fn is_late(&self, owed: &Owed) -> bool {
        let profile = self.attention.profile();
        let is_shell = || profile.rules.values().any(|rule| rule.seen == Seen::Foreground);
        let owns = || {
            let owner = self.handle.session().pid.and_then(platform::foreground);
            owner.is_some_and(|owner| owner.own)
        };
        let typed = self.status.last_input.is_some();
        owed.left || (owed.printed && typed && is_shell() && owns())
    }
}
