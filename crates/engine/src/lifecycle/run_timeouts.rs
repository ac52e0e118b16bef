//! Decides when a run has lasted or been quiet for too long.

use std::time::Duration;

use tokio::time::Instant;
use wharf_backend::Status;
use wharf_model::{Millis, Reason, Stats, Ticket};

use crate::instance::shared::now;
use crate::platform;

/// How soon a question that failed, or a stop that did, is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);
/// The least time between two looks, so that a tiny timeout does not become a busy loop.
const MIN_INTERVAL: Duration = Duration::from_millis(5);

/// When a run has lasted long enough, or been quiet long enough. Time is counted by a clock that nobody sets.
pub(crate) struct Supervision {
    run: Option<Duration>,
    idle: Option<Idle>,
    since: Instant,
    age: Duration,
    /// Not to be looked at before this.
    not_before: Instant,
}

struct Idle {
    limit: Duration,
    /// How long it had been quiet at `at`.
    quiet: Duration,
    at: Instant,
    seen: Option<(u64, Option<Millis>)>,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// End it.
    Stop(Reason),
    /// Ask what it has printed.
    AskStats,
}

impl Supervision {
    /// For a run that starts now.
    pub(crate) fn fresh(ticket: &Ticket) -> Self {
        Self::aged(ticket, Duration::ZERO)
    }

    /// For a run that was found again.
    pub(crate) fn found(ticket: &Ticket) -> Self {
        let by_wall = Duration::from_millis(now().0.saturating_sub(ticket.started.0));
        let age = ticket.command.as_ref().and_then(platform::run_age).unwrap_or(by_wall);
        Self::aged(ticket, age)
    }

    fn aged(ticket: &Ticket, age: Duration) -> Self {
        let limit = |millis: Millis| Duration::from_millis(millis.0);
        let since = Instant::now();
        let idle = ticket.spec.idle_timeout.map(limit);
        Self {
            run: ticket.spec.run_timeout.map(limit),
            idle: idle.map(|limit| Idle { limit, quiet: Duration::ZERO, at: since, seen: None }),
            since,
            age,
            not_before: since,
        }
    }

    /// How long the run has lasted.
    pub(crate) fn lasted(&self) -> Duration {
        self.age + self.since.elapsed()
    }

    /// When to look next; `None` where there is nothing to look for.
    pub(crate) fn next(&self) -> Option<Instant> {
        let run = self.run.map(|run| self.since + run.saturating_sub(self.age));
        let idle = self.idle.as_ref().map(|idle| match idle.seen {
            Some(_) => idle.at + idle.limit.saturating_sub(idle.quiet),
            // Nothing is known of it yet: look at once, it may have been quiet for long before it was found.
            None => idle.at,
        });
        [run, idle].into_iter().flatten().min().map(|at| at.max(self.not_before))
    }

    /// What is due now.
    pub(crate) fn due(&mut self) -> Option<Due> {
        if self.run.is_some_and(|run| self.lasted() >= run) {
            self.not_before = Instant::now() + RETRY_INTERVAL;
            return Some(Due::Stop(Reason::Timeout));
        }
        self.idle.as_ref()?;
        // The answer sets the next time; until then there is no second question.
        self.not_before = Instant::now() + RETRY_INTERVAL;
        Some(Due::AskStats)
    }

    /// Takes an answer into account. What could not be asked counts as activity: nothing ends on doubt.
    pub(crate) fn looked(&mut self, stats: Option<&Stats>, status: &Status) -> Option<Due> {
        let lasted = self.lasted();
        let idle = self.idle.as_mut()?;
        let here = Instant::now();
        let Some(stats) = stats else {
            (idle.quiet, idle.at) = (Duration::ZERO, here);
            self.not_before = here + RETRY_INTERVAL.min(idle.limit).max(MIN_INTERVAL);
            return None;
        };
        let seen = (stats.log_end.0, status.last_input.max(stats.last_input));
        let by_wall = stats
            .last_output
            .max(seen.1)
            .map_or(lasted, |last| Duration::from_millis(now().0.saturating_sub(last.0)));
        let between = here - idle.at;
        idle.quiet = match idle.seen {
            Some(before) if before == seen => idle.quiet + between,
            // Something happened since the last look, so it has not been quiet for longer than that.
            Some(_) => by_wall.min(between),
            // Longer than the run itself: the clock was set, and says nothing.
            None if by_wall > lasted + Duration::from_secs(1) => Duration::ZERO,
            None => by_wall.min(lasted),
        };
        (idle.seen, idle.at) = (Some(seen), here);
        self.not_before = here + MIN_INTERVAL;
        if idle.quiet < idle.limit {
            return None;
        }
        self.not_before = here + RETRY_INTERVAL;
        Some(Due::Stop(Reason::Idle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_model::{Name, Offset, SessionId, Spec};

    fn ticket(run: Option<u64>, idle: Option<u64>) -> Ticket {
        let mut spec = Spec::new(["x"], "/");
        spec.run_timeout = run.map(Millis);
        spec.idle_timeout = idle.map(Millis);
        let id = SessionId::new(Millis(1), 1);
        let name: Name = "x".parse().unwrap();
        Ticket { started: now(), ..Ticket::new(id, now(), name, "x", "/", "", spec) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_timeout_counts_the_time_before_it_was_found() {
        let mut ticket = ticket(Some(60_000), None);
        ticket.started = Millis(now().0 - 50_000);
        let mut supervision = Supervision::found(&ticket);
        let wait = supervision.next().unwrap() - Instant::now();
        assert!(wait <= Duration::from_secs(10) && wait > Duration::from_secs(8), "{wait:?}");
        assert_eq!(supervision.due(), None);
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(supervision.due(), Some(Due::Stop(Reason::Timeout)));
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_time_starts_again_with_output_and_with_input() {
        let mut supervision = Supervision::fresh(&ticket(None, Some(1_000)));
        let mut status = Status::default();
        let mut stats = Stats { last_output: Some(now()), ..Stats::default() };
        assert_eq!(supervision.due(), Some(Due::AskStats));
        assert_eq!(supervision.looked(Some(&stats), &status), None);
        tokio::time::advance(Duration::from_millis(900)).await;
        (stats.log_end, stats.last_output) = (Offset(1), Some(now()));
        assert_eq!(supervision.looked(Some(&stats), &status), None);
        tokio::time::advance(Duration::from_millis(900)).await;
        status.last_input = Some(now());
        assert_eq!(supervision.looked(Some(&stats), &status), None);
        tokio::time::advance(Duration::from_millis(1_001)).await;
        assert_eq!(supervision.looked(Some(&stats), &status), Some(Due::Stop(Reason::Idle)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_ahead_ends_nothing() {
        let mut supervision = Supervision::fresh(&ticket(None, Some(1_000)));
        // As if the last output had been a year ago: the run is not that old.
        let stats = Stats { last_output: Some(Millis(now().0 - 31_536_000_000)), ..Stats::default() };
        assert_eq!(supervision.looked(Some(&stats), &Status::default()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_asked_is_not_idle() {
        let mut supervision = Supervision::fresh(&ticket(None, Some(1_000)));
        for _ in 0..5 {
            tokio::time::advance(Duration::from_secs(2)).await;
            assert_eq!(supervision.looked(None, &Status::default()), None);
        }
    }
}
