//! How far something long is, for people at a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::output;
use crate::quantity::human_bytes;
use crate::table::clean;

/// How often a line is drawn anew.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// How wide a bar is.
const BAR_WIDTH: usize = 24;

/// Bytes that were moved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Counter {
    /// So many by now.
    pub(crate) fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Draws the count for as long as the work takes, where standard error is a terminal.
    pub(crate) async fn shown<T>(&self, what: &str, quiet: bool, work: impl Future<Output = T>) -> T {
        if quiet || !io::stderr().is_terminal() {
            return work.await;
        }
        let begun = Instant::now();
        tokio::pin!(work);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                () = tokio::time::sleep(REDRAW_INTERVAL) => {
                    let bytes = self.0.load(Ordering::Relaxed);
                    let rate = bytes as f64 / begun.elapsed().as_secs_f64();
                    let line = format!("{what}: {} at {}/s", human_bytes(bytes), human_bytes(rate as u64));
                    let _ = write!(io::stderr(), "\r\x1b[K{}", clean(&line));
                }
            }
        };
        let _ = write!(io::stderr(), "\r\x1b[K");
        done
    }
}

/// Steps of something long: each a line, and those that say how much is done a bar that stays in its place.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    open: bool,
}

impl Steps {
    /// Shows a step, where standard error is a terminal.
    pub(crate) fn tell(&mut self, step: &str) {
        if !io::stderr().is_terminal() {
            return;
        }
        if let Some(percent) = percent(step) {
            let _ = write!(io::stderr(), "\r\x1b[K{} {}", clean(step), bar(percent));
            self.open = true;
            return;
        }
        self.end();
        output::note(step);
    }

    /// Leaves the bar's line.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = writeln!(io::stderr());
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.end();
    }
}

/// How much a step says is done: `fetching x: 45 %`.
fn percent(step: &str) -> Option<usize> {
    let number = step.trim_end().strip_suffix('%')?.trim_end();
    let at = number.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    number[at..].parse().ok().filter(|percent| *percent <= 100)
}

fn bar(percent: usize) -> String {
    let full = percent * BAR_WIDTH / 100;
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR_WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_how_much_is_a_bar() {
        assert_eq!(percent("fetching alpine: 45 %"), Some(45));
        assert_eq!(percent("100%"), Some(100));
        for no in ["Step 1/3 : FROM x", "45", "%", "at 4x %", "101 %"] {
            assert_eq!(percent(no), None, "{no}");
        }
        assert_eq!(bar(50), "[############------------]");
        assert_eq!((bar(0).len(), bar(100).len()), (26, 26));
    }
}
