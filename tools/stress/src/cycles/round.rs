//! Starts, ends and removes one session, and times each step.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use wharf_tool_support::instance::Instance;

use super::dress::Dress;

/// How long each step took.
#[derive(Default)]
pub(super) struct Times {
    steps: [Vec<Duration>; 3],
}

/// Starts a session, ends it and removes it: every third by `rm --force` alone.
pub(super) fn play(instance: &Instance, dress: &Dress, number: u64, times: &mut Times) -> Result<()> {
    let name = format!("c{number}");
    times.time(0, || instance.run(&dress.run(&name)))?;
    match number % 3 {
        0 => times.time(1, || instance.run(&["stop", &name]))?,
        1 => times.time(1, || instance.run(&["kill", &name]))?,
        _ => return times.time(2, || instance.run(&["rm", "--force", &name])),
    }
    times.time(2, || instance.run(&["rm", &name]))
}

impl Times {
    fn time<T>(&mut self, step: usize, run: impl FnOnce() -> Result<T>) -> Result<()> {
        let began = Instant::now();
        run()?;
        self.steps[step].push(began.elapsed());
        Ok(())
    }

    pub(super) fn add(&mut self, other: Self) {
        for (own, other) in self.steps.iter_mut().zip(other.steps) {
            own.extend(other);
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, step) in ["medians: start", ", end", ", removal"].iter().zip(&self.steps) {
            let mut sorted = step.clone();
            sorted.sort_unstable();
            let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
            write!(f, "{what} {:.1} ms", median.as_secs_f64() * 1e3)?;
        }
        Ok(())
    }
}
