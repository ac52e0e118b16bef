//! What looking at one session may cost. Patterns are data that others write, over text that others print.
//!
//! A pattern is matched in time that is linear in its size and the text, and both have limits. What is left is many
//! patterns that are each slow: a look that takes longer than [`MAX_LOOK_TIME`] is broken off, and what took most of it is
//! switched off for that session, and for no other. One that is matched against more than [`MAX_TEXTS`] rows at one look (a
//! rule within a rule may try every row for every row) is switched off as well. Nobody types at a session of which a pattern is off: what it asks can
//! not be told any more.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wharf_model::{Source, State};

use crate::{Finding, Profile};

/// How long all patterns together may take at one look, in processor time.
pub const MAX_LOOK_TIME: Duration = Duration::from_millis(40);

/// A pattern that took this long of a look that took too long is switched off with the slowest.
const MAX_SHARE: Duration = Duration::from_millis(10);

/// How many rows one pattern may be matched against at one look: a screen has at most 4,096.
const MAX_TEXTS: u32 = 1 << 16;

/// More than any rule weighs.
const OVERRULING_WEIGHT: u32 = 1_000;

thread_local! {
    static METER: RefCell<Option<Meter>> = const { RefCell::new(None) };
}

/// What one look has cost so far.
struct Meter {
    begun: Instant,
    processor: Duration,
    off: Vec<Arc<str>>,
    spent: Vec<Spent>,
    over: bool,
}

/// What one pattern has cost so far.
struct Spent {
    pattern: Arc<str>,
    time: Duration,
    texts: u32,
}

/// The patterns that are switched off for one session.
#[derive(Debug, Default)]
pub struct Budget {
    off: Mutex<Vec<Arc<str>>>,
}

impl Budget {
    /// Looks, for no longer than a look may take.
    pub fn look<T>(&self, work: impl FnOnce() -> T) -> T {
        let meter = Meter {
            begun: Instant::now(),
            processor: processor_time(),
            off: self.off().clone(),
            spent: Vec::new(),
            over: false,
        };
        METER.with_borrow_mut(|current| *current = Some(meter));
        let done = work();
        if let Some(meter) = METER.with_borrow_mut(Option::take) {
            let slowest = meter.spent.iter().map(|spent| spent.time).max().unwrap_or_default();
            let slow = |spent: &Spent| meter.over && (spent.time == slowest || spent.time > MAX_SHARE);
            let off = meter.spent.iter().filter(|spent| slow(spent) || spent.texts >= MAX_TEXTS);
            self.off().extend(off.map(|spent| Arc::clone(&spent.pattern)));
        }
        done
    }

    /// The names of the patterns of a profile that are switched off.
    pub fn switched_off(&self, profile: &Profile) -> Vec<String> {
        let off = self.off();
        if off.is_empty() {
            return Vec::new();
        }
        let named = profile.patterns();
        let name = |text: &Arc<str>| {
            let known = named.iter().find(|(_, pattern)| pattern.as_str() == &**text);
            known.map_or_else(|| format!("{text:.60?}"), |(name, _)| name.clone())
        };
        off.iter().map(name).collect()
    }

    /// Whether any pattern is switched off.
    pub fn is_exceeded(&self) -> bool {
        !self.off().is_empty()
    }

    /// What follows for the session's state from patterns that are switched off.
    pub fn finding(&self, profile: &Profile) -> Option<Finding> {
        let off = self.switched_off(profile);
        (!off.is_empty()).then(|| Finding {
            state: State::Asking,
            source: Source::Terminal,
            rule: "budget".to_owned(),
            evidence: format!(
                "it cannot be told what is asked: too slow, and switched off: {}",
                off.join(", ")
            ),
            weight: OVERRULING_WEIGHT,
        })
    }

    fn off(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a pattern may be matched now.
pub(crate) fn allows(pattern: &Arc<str>) -> bool {
    METER.with_borrow(|meter| {
        meter.as_ref().is_none_or(|meter| {
            let worn_out = |spent: &Spent| spent.texts >= MAX_TEXTS && Arc::ptr_eq(&spent.pattern, pattern);
            !meter.over
                && !meter.off.iter().any(|off| **off == **pattern)
                && !meter.spent.iter().any(worn_out)
        })
    })
}

/// A pattern was matched, and took this long.
pub(crate) fn spent(pattern: &Arc<str>, time: Duration) {
    METER.with_borrow_mut(|meter| {
        let Some(meter) = meter else { return };
        match meter.spent.iter_mut().find(|spent| Arc::ptr_eq(&spent.pattern, pattern)) {
            Some(spent) => (spent.time, spent.texts) = (spent.time + time, spent.texts + 1),
            None => meter.spent.push(Spent { pattern: Arc::clone(pattern), time, texts: 1 }),
        }
        // The clock on the wall runs on while others have the processor: it only says when to look at the other one.
        meter.over = meter.begun.elapsed() > MAX_LOOK_TIME
            && processor_time().saturating_sub(meter.processor) > MAX_LOOK_TIME;
    });
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Look, Pattern, Profiles};

    /// Looks at so many rows with a pattern that is fast, and says how many of them it was matched against.
    fn rows_seen(budget: &Budget, pattern: &Pattern, rows: u32) -> u32 {
        budget.look(|| (0..rows).filter(|_| pattern.is_match("a short row")).count()) as u32
    }

    #[test]
    fn a_pattern_sees_so_many_rows_at_one_look() {
        let (budget, pattern) = (Budget::default(), Pattern::new("row$").unwrap());
        assert_eq!(rows_seen(&budget, &pattern, 4096), 4096);
        assert!(!budget.is_exceeded(), "a whole screen is no excess");
        assert!(rows_seen(&budget, &pattern, 2 * MAX_TEXTS) <= MAX_TEXTS);
        assert!(budget.is_exceeded());
        assert_eq!(rows_seen(&budget, &pattern, 1), 0, "it is switched off from then on");
    }

    #[test]
    fn many_that_are_fast_are_broken_off_too() {
        let budget = Budget::default();
        let patterns: Vec<Pattern> =
            (0..200).map(|number| Pattern::new(&format!("{number}$")).unwrap()).collect();
        let begun = processor_time();
        budget.look(|| {
            for pattern in patterns.iter().flat_map(|pattern| std::iter::repeat_n(pattern, 40_000)) {
                pattern.is_match("a row without a number");
            }
        });
        assert!(
            budget.is_exceeded(),
            "eight million matches took {:?}",
            processor_time().saturating_sub(begun)
        );
    }

    /// As slow as a pattern may be, each another one.
    fn evil(number: usize) -> String {
        format!(
            "[rule.evil-{number}]\nstate = \"idle\"\nin = \"screen\"\nregion = \"screen\"\nmatch = '(x|.|\\w)*(x|.){{0,{}}}z$'\n",
            60 + number
        )
    }

    #[test]
    fn slow_patterns_are_switched_off_one_look_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("profiles")).unwrap();
        let text: String = (0..20).map(evil).collect();
        std::fs::write(dir.path().join("profiles/evil.toml"), text).unwrap();
        let profile = Profiles::load(Some(dir.path()), None).unwrap().named("evil").unwrap();
        let rows: Vec<String> = (0..200).map(|_| "x".repeat(400)).collect();
        let look = Look { rows: &rows, ..Look::default() };
        let budget = Budget::default();
        let mut looks = 0;
        loop {
            let before = budget.switched_off(&profile).len();
            let begun = processor_time();
            budget.look(|| profile.recognise(&look));
            let took = processor_time().saturating_sub(begun);
            assert!(took < 5 * MAX_LOOK_TIME, "a look took {took:?}");
            if budget.switched_off(&profile).len() == before {
                break;
            }
            looks += 1;
            assert!(looks <= 20);
        }
        let off = budget.switched_off(&profile);
        assert!(off.iter().any(|name| name.starts_with("rule.evil-")), "{off:?}");
        assert!(off.iter().all(|name| name.starts_with("rule.evil-")), "no other: {off:?}");
        let finding = budget.finding(&profile).unwrap();
        assert!(finding.state == State::Asking && finding.evidence.contains("rule.evil-"), "{finding:?}");
        assert!(!Budget::default().is_exceeded(), "other sessions have their own");
    }

    #[test]
    fn what_comes_with_wharf_stays_far_below() {
        for text in ["Do you want to ", "❯ 1. ", "│ > ", "────────", "aaaaaaaa", "1. Yes (esc) "]
        {
            let rows: Vec<String> = (0..60).map(|_| text.repeat(250 / text.len() + 1)).collect();
            let look = Look { rows: &rows, title: &rows[0], ..Look::default() };
            for profile in Profiles::built_in().iter() {
                let budget = Budget::default();
                budget.look(|| (profile.recognise(&look), profile.question(&look), profile.composer(&look)));
                assert_eq!(budget.switched_off(profile), Vec::<String>::new(), "{text:?}");
            }
        }
    }
}
