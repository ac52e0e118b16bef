//! How much a holder may say that nobody asked for: one that is not ours any more must keep nobody busy.

use std::time::{Duration, Instant};

use crate::frame::Kind;

/// What a holder may spend in a second for good. A frame costs one and one more for each KiB of it.
const BUDGET_PER_SECOND: i64 = 2_000;
/// What it may spend at once.
const MAX_BUDGET: i64 = 8_000;
/// What news cost: each wakes whoever looks at the session, so there are at most a hundred in a second.
const NEWS_COST: i64 = 20;
/// How far it may get into debt: what it owes is waited for, and a request to it waits as long.
const MAX_DEBT: i64 = -BUDGET_PER_SECOND / 2;
/// The shortest pause: a hundred such holders shall cost little.
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// What is said of a holder that says too much.
pub const TOO_MUCH_OUTPUT: &str = "the holder talks without end, and nobody asked for it";

/// What one holder may still say.
#[derive(Debug)]
pub struct Pace {
    credit: i64,
    since: Instant,
}

impl Pace {
    /// With all that may be said at once.
    pub fn new(now: Instant) -> Self {
        Self { credit: MAX_BUDGET, since: now }
    }

    /// A frame came that nobody had asked for.
    pub fn spend(&mut self, kind: Option<Kind>, len: usize) {
        let cost = if matches!(kind, Some(Kind::News | Kind::Exit)) { NEWS_COST } else { 1 };
        self.credit = (self.credit - cost - (len >> 10) as i64).max(MAX_DEBT);
    }

    /// How long nothing is to be read any more; none while there is credit.
    pub fn pause(&mut self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        if self.credit > 0 {
            // Looked at only when it could matter: the clock costs more than a frame.
            return None;
        }
        let now = now();
        let earned = i64::try_from(now.duration_since(self.since).as_millis())
            .map_or(MAX_BUDGET, |millis| millis * BUDGET_PER_SECOND / 1_000);
        self.since = now;
        self.credit = (self.credit + earned).min(MAX_BUDGET);
        let lacks = u64::try_from(1 - self.credit).unwrap_or(0);
        (lacks > 0).then(|| MIN_PAUSE.max(Duration::from_millis(lacks * 1_000 / BUDGET_PER_SECOND as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_too_much_is_paused_and_earns_his_credit_back() {
        let begun = Instant::now();
        let mut now = begun;
        let mut pace = Pace::new(now);
        for _ in 0..MAX_BUDGET / NEWS_COST {
            assert_eq!(pace.pause(|| now), None);
            pace.spend(Some(Kind::News), 100);
        }
        assert!(pace.pause(|| now).is_some());
        // At full speed for ten seconds.
        let mut frames = 0;
        while now.duration_since(begun) < Duration::from_secs(10) {
            if let Some(pause) = pace.pause(|| now) {
                now += pause;
            } else {
                pace.spend(Some(Kind::News), 100);
                frames += 1;
            }
        }
        assert!((800..1_600).contains(&frames), "{frames}");
        // A flood of one read is paid for in half a second.
        for _ in 0..1_000 {
            pace.spend(Some(Kind::News), 100);
        }
        assert!(pace.pause(|| now).is_some_and(|pause| pause <= Duration::from_secs(1)));
        now += Duration::from_secs(10);
        assert_eq!(pace.pause(|| now), None);
    }
}
