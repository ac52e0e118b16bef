//! Defines what an observer knows of its session beyond one look, and leaves to the observer after it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_model::Millis;

/// How long a turn may take to show after its message was taken.
const EXPECTED_TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// How late an agent may say of the turn before that it is over.
const LATE_END_TIME: Duration = Duration::from_millis(400);

/// What an observer knows beyond one look. Only the observer has it; others ask it to change it.
#[derive(Default)]
pub(crate) struct Memory {
    /// Whether the agent's hooks have called us.
    pub(crate) has_hooks: bool,
    /// The prompt that the agent itself said began its turn, and when.
    pub(crate) prompt: Option<(Millis, Arc<str>)>,
    /// What the program's prompt was before anybody typed, where it looks like the prompt for the rest of something.
    pub(crate) main_prompt: Option<String>,
    /// The dialogs of its start that were answered: the run, and the question's name.
    pub(crate) answered_startup: Vec<(u32, String)>,
    /// Whether something changed here that was not published yet.
    pub(crate) changed: bool,
    /// Until when a turn is expected that a message has begun and that does not show yet.
    turn_expected: Option<Instant>,
    /// When a turn was last seen.
    last_turn: Option<Instant>,
}

impl Memory {
    /// A message was taken: what looks idle is so no longer, until the turn has shown or does not come.
    ///
    /// Whether it is still to come: a turn that was seen since the key was pressed is not waited for again.
    pub(crate) fn expect_turn(&mut self, pressed: Instant) -> bool {
        if self.last_turn.is_some_and(|at| at >= pressed) {
            return false;
        }
        self.turn_expected = Some(Instant::now() + EXPECTED_TURN_TIMEOUT);
        self.changed = true;
        true
    }

    /// A turn is over, by what the agent itself says. Where its beginning was not told with it (`whole`), it may be the
    /// turn before, of which it says so this late.
    pub(crate) fn end_turn(&mut self, whole: bool) {
        let ours =
            |until: &mut Instant| whole || *until + LATE_END_TIME <= Instant::now() + EXPECTED_TURN_TIMEOUT;
        self.changed |= self.turn_expected.take_if(ours).is_some();
    }

    /// Until when a turn is expected; not any more once it has been seen.
    pub(crate) fn turn_expected_until(&mut self, seen: bool) -> Option<Instant> {
        if seen {
            self.last_turn = Some(Instant::now());
        }
        self.turn_expected.take_if(|until| seen || Instant::now() >= *until);
        self.turn_expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_was_seen_since_the_key_was_pressed_is_not_expected() {
        let (mut memory, pressed) = (Memory::default(), Instant::now());
        assert_eq!(memory.turn_expected_until(true), None);
        assert!(!memory.expect_turn(pressed));
        assert!(memory.expect_turn(Instant::now() + Duration::from_millis(1)));
        assert!(std::mem::take(&mut memory.changed) && memory.turn_expected_until(false).is_some());
        memory.end_turn(false);
        assert!(!memory.changed && memory.turn_expected_until(false).is_some(), "it is of the turn before");
        memory.end_turn(true);
        assert!(memory.changed && memory.turn_expected_until(false).is_none());
    }
}
