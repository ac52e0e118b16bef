//! Gives out session ids that sort by creation, even within one millisecond.

use std::sync::{Mutex, PoisonError};

use wharf_model::{Millis, SessionId};

use crate::Result;
use crate::instance::shared::random;

/// Bits of an id below its time.
const RANDOM_BITS: u32 = 35;

/// Gives out ids that sort by the order of creation, also within one millisecond and when the clock goes back.
#[derive(Default)]
pub(crate) struct Ids(Mutex<(u64, u64)>);

impl Ids {
    pub(crate) fn next(&self, created: Millis) -> Result<SessionId> {
        let random = random()?;
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = after(*last, created.0, random);
        Ok(SessionId::new(Millis(last.0), last.1))
    }
}

/// The time and the random part of the id that follows `last`.
fn after(last: (u64, u64), now: u64, random: u64) -> (u64, u64) {
    if now > last.0 {
        // Half of the room is left for those that follow within this millisecond.
        return (now, random & ((1 << (RANDOM_BITS - 1)) - 1));
    }
    let next = last.1 + 1 + (random & 0xffff);
    if next >> RANDOM_BITS == 0 { (last.0, next) } else { (last.0 + 1, random & 0xffff) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_sort_by_their_order() {
        let ids = Ids::default();
        let mut last = ids.next(Millis(5)).unwrap();
        for round in 0..10_000_u64 {
            // The clock stands, and goes back now and then.
            let next = ids.next(Millis(5 - round % 2)).unwrap();
            assert!(next > last, "{next} follows {last}");
            last = next;
        }
    }

    #[test]
    fn a_full_millisecond_runs_over_into_the_next() {
        let full = (7, (1 << RANDOM_BITS) - 1);
        assert_eq!(after(full, 7, 3), (8, 3));
        assert_eq!(after((7, 1), 9, u64::MAX), (9, (1 << (RANDOM_BITS - 1)) - 1));
    }
}
