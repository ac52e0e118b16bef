//! One run of `cargo xtask test`: every step is taken, and what failed is listed at the end.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The steps so far.
pub(crate) struct Run {
    began: Instant,
    /// The only steps that are wanted; all of them where this is empty.
    only: Vec<String>,
    taken: Vec<&'static str>,
    failed: Vec<(&'static str, String)>,
}

impl Run {
    pub(crate) fn new(only: Vec<String>) -> Self {
        Self { began: Instant::now(), only, taken: Vec::new(), failed: Vec::new() }
    }

    /// Takes a step, unless others are wanted. One that fails stops none of the others: whoever waited for a whole run
    /// learns all of it.
    pub(crate) fn step(&mut self, name: &'static str, take: impl FnOnce() -> Result<()>) {
        if !self.only.is_empty() && !self.only.iter().any(|wanted| wanted == name) {
            return;
        }
        self.taken.push(name);
        println!("== {name}");
        let began = Instant::now();
        match take() {
            Ok(()) => println!("== {name}: ok, {}", seconds(began.elapsed())),
            Err(error) => {
                println!("== {name}: FAILED, {}: {error:#}", seconds(began.elapsed()));
                self.failed.push((name, format!("{error:#}")));
            }
        }
    }

    /// The outcome of all of them.
    pub(crate) fn finish(self) -> Result<()> {
        let unknown: Vec<&str> =
            self.only.iter().map(String::as_str).filter(|name| !self.taken.contains(name)).collect();
        if !unknown.is_empty() {
            bail!("there is no step {}", unknown.join(", "));
        }
        let took = seconds(self.began.elapsed());
        if self.failed.is_empty() {
            println!("all passed, {took}");
            return Ok(());
        }
        println!("{} of {} steps failed, {took}:", self.failed.len(), self.taken.len());
        for (name, error) in &self.failed {
            println!("  {name}: {error}");
        }
        let names: Vec<&str> = self.failed.iter().map(|(name, _)| *name).collect();
        bail!("failed: {}; `cargo xtask test --only STEP,…` takes some steps alone", names.join(", "))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stops_no_step_after_it_and_fails_the_run() {
        let mut taken = Vec::new();
        let mut run = Run::new(Vec::new());
        run.step("first", || bail!("it is broken"));
        run.step("second", || {
            taken.push("second");
            Ok(())
        });
        run.step("third", || bail!("that too"));
        assert_eq!(taken, ["second"]);
        let error = run.finish().unwrap_err().to_string();
        assert!(error.starts_with("failed: first, third;"), "{error}");
    }

    #[test]
    fn some_steps_alone_and_a_misspelt_one() {
        let mut run = Run::new(vec!["docs".into()]);
        run.step("format", || bail!("it was not wanted"));
        run.step("docs", || Ok(()));
        run.finish().unwrap();
        let mut run = Run::new(vec!["dosc".into()]);
        run.step("docs", || Ok(()));
        assert!(run.finish().unwrap_err().to_string().contains("there is no step dosc"));
    }
}
