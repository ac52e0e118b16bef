//! Lists the cases that are played with every real agent.

use anyhow::Result;

use crate::stage::Stage;
use crate::{control, messages, survival};

/// One thing that must go right with every agent.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// It wants an agent that has only just been started.
    pub(crate) fresh: bool,
    pub(crate) play: fn(&mut Stage) -> Result<Verdict>,
}

/// How a case went, when nothing was wrong.
pub(crate) enum Verdict {
    Passed,
    /// The agent has no such thing, and why.
    Absent(&'static str),
}

const fn case(name: &'static str, about: &'static str, play: fn(&mut Stage) -> Result<Verdict>) -> Case {
    Case { name, about, fresh: false, play }
}

/// Every case, in the order in which they are played.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "before ready",
        about: "sent in the moment in which the agent is started",
        fresh: true,
        play: messages::before_ready,
    },
    case("one line", "a short message", messages::one_line),
    case("many lines", "twelve lines, some of them empty", messages::many_lines),
    case("2 KB", "one paragraph of 2 KB", messages::two_kilobytes),
    case("20 KB", "20 KB in lines of a common length", messages::twenty_kilobytes),
    case("200 lines", "200 short lines", messages::two_hundred_lines),
    case("unicode", "umlauts, CJK, emoji, combining marks, right-to-left", messages::unicode),
    case("shell-like", "what a shell would run; nothing may", messages::shell_like),
    case("tabs and ends", "tabs, and white space at both ends", messages::tabs_and_ends),
    case("escape bytes", "ESC, the end of a paste, CR, BEL, backspace in the text", messages::escape_bytes),
    case("leading !", "what some agents run without asking: refused, or text", messages::leading_bang),
    case("last \\", "what some agents take for a line break", messages::last_backslash),
    case("last @name", "what opens a list that takes the Enter", messages::last_mention),
    case("same key twice", "one idempotency key, sent twice: arrives once", messages::same_key),
    case("two senders", "two commands at the same time: two messages", messages::two_senders),
    case("while working", "sent in the middle of a turn, which goes on", messages::while_working),
    case("state while streaming", "working, and nothing else, while an answer streams", control::streaming),
    case("state while silent", "working, and nothing else, while the model thinks", control::silent),
    case("ask", "`wharf ask` prints the answer of the turn", messages::ask),
    case("interrupt", "the turn stops, and the next message arrives", control::interrupt),
    case("escape", "the literal key", control::escape),
    case("while asking", "sent at a permission prompt: grants nothing", control::while_asking),
    case("queued at asking", "waits for the prompt to be answered, then arrives", control::queued_at_asking),
    case("approve", "the command runs", control::approve),
    case("deny", "the command does not run", control::deny),
    case("daemon killed", "kill -9 between two messages", survival::daemon_killed),
    case("killed in queue", "kill -9 while a message waits in the queue", survival::killed_in_queue),
];
