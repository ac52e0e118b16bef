//! Compares Wharf in tmux and containers with their own command lines.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use rustix::thread::sched_setaffinity;
use wharf_tool_support::container_engine::{ContainerEngine, Kind};
use wharf_tool_support::process;
use wharf_tool_support::step::has;

use crate::course::{Entry, STEP_TIMEOUT, settle};
use crate::notes::{Notes, now};
use crate::place::Place;
use crate::rival::{OwnTool, Rival, Wharf};
use crate::samples::Samples;
use crate::table::Table;

/// Places that hold sessions by themselves: what Wharf costs in them, beside their own command line.
///
/// The same command, in the same server or engine, with the same image, volume and network. Not pinned: an engine is many
/// processes, and how they share the processors is part of what it is.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let Some(wharf) = &entry.wharf else { return Ok(()) };
    sched_setaffinity(None, &entry.processors)?;
    let mut text = String::from("| | its own command | wharf | |\n|---|---|---|---|\n");
    for backend in ["tmux", "docker", "podman"] {
        if !has(backend) {
            println!("{backend} is not here: its rows are left out");
            continue;
        }
        let place = Rc::new(Place::new()?);
        let engine = Kind::of(backend).map(ContainerEngine::start).transpose()?.map(Rc::new);
        let sides: [Box<dyn Rival>; 2] = [
            Box::new(OwnTool::new(&place, engine.as_ref())?),
            Box::new(Wharf::new(&place, wharf, backend, engine.as_ref())?),
        ];
        let mut ground =
            Ground { notes: Notes::new(place.path())?, place, next: 0, random: Rng::with_seed(11) };
        let rounds = if entry.quick { 5 } else { 30 };
        let [own, ours] = ground.starts(&sides, rounds)?;
        let what = sides[0].name();
        text += &row(&format!("{what}: until the command runs"), "ms", &own.runs, &ours.runs);
        text += &row(&format!("{what}: until it returns"), "ms", &own.returns, &ours.returns);
        let count = if entry.quick { 3 } else { 10 };
        let [own, ours] = ground.memory(&sides, count)?;
        text += &row(&format!("{what}: memory of each further session"), "KB", &own, &ours);
    }
    table.places = Some(text);
    Ok(())
}

/// What starts took.
#[derive(Default)]
struct Starts {
    runs: Samples,
    returns: Samples,
}

struct Ground {
    place: Rc<Place>,
    notes: Notes,
    next: i32,
    random: Rng,
}

impl Ground {
    /// A session's number and its command.
    fn command(&mut self, what: &str) -> (i32, Vec<String>) {
        self.next += 1;
        let words = [
            self.place.program("command").display().to_string(),
            what.to_owned(),
            self.notes.path().display().to_string(),
            self.next.to_string(),
        ];
        (self.next, words.to_vec())
    }

    /// Starts a session; how long until its command ran, and until whoever started it had returned.
    fn start(&mut self, side: &dyn Rival) -> Result<(i32, f64, f64)> {
        let (id, argv) = self.command("idle");
        let mut command: Command = side.start(&format!("s{id}"), &argv);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let began = now();
        let child = command.spawn().with_context(|| side.name())?;
        let ended = child.wait_with_output()?;
        let returned = now();
        if !ended.status.success() {
            bail!("{}: {}", side.name(), String::from_utf8_lossy(&ended.stderr).trim_end());
        }
        let ran = self.notes.from(id, STEP_TIMEOUT).with_context(|| side.name())?.when;
        Ok((id, (ran - began) as f64 / 1e6, (returned - began) as f64 / 1e6))
    }

    fn starts(&mut self, sides: &[Box<dyn Rival>; 2], rounds: usize) -> Result<[Starts; 2]> {
        let mut found = [Starts::default(), Starts::default()];
        // The first of each is not counted: it fills caches that the others find full.
        for round in 0..=rounds {
            let mut order = [0, 1];
            self.random.shuffle(&mut order);
            for at in order {
                let (id, ran, returned) = self.start(&*sides[at])?;
                sides[at].end(&format!("s{id}"))?;
                settle();
                if round > 0 {
                    found[at].runs.push(ran);
                    found[at].returns.push(returned);
                }
            }
        }
        Ok(found)
    }

    /// Private memory that each session adds, without its command's own, in kilobytes.
    fn memory(&mut self, sides: &[Box<dyn Rival>; 2], count: u32) -> Result<[Samples; 2]> {
        let mut found = [Samples::default(), Samples::default()];
        for (at, side) in sides.iter().enumerate() {
            let mut sessions = vec![self.start(&**side)?.0];
            let one = self.private(&**side);
            for _ in 0..count {
                sessions.push(self.start(&**side)?.0);
            }
            found[at].push((self.private(&**side) - one) / f64::from(count));
            for id in sessions {
                side.end(&format!("s{id}"))?;
            }
        }
        Ok(found)
    }

    fn private(&self, side: &dyn Rival) -> f64 {
        std::thread::sleep(Duration::from_secs(1));
        let command = self.place.program("command");
        let pids =
            side.processes().into_iter().filter(|pid| process::program(*pid).as_ref() != Some(&command));
        pids.filter_map(|pid| process::private_memory(pid).ok()).sum::<u64>() as f64 / 1024.0
    }
}

/// A row with the ratio at its end.
fn row(what: &str, unit: &str, own: &Samples, ours: &Samples) -> String {
    let (Some(own_median), Some(our_median)) = (own.median(), ours.median()) else { return String::new() };
    let shown = |samples: &Samples, median: f64| match samples.percentile(0.95) {
        Some(most) if samples.count() > 1 => format!("{median:.1} {unit} (p95 {most:.1})"),
        _ => format!("{median:.0} {unit}"),
    };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "| {what} | {} | {} | **{:.2}×** |",
        shown(own, own_median),
        shown(ours, our_median),
        our_median / own_median
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ends_with_the_ratio() {
        let of = |values: &[f64]| {
            let mut samples = Samples::default();
            for value in values {
                samples.push(*value);
            }
            samples
        };
        let text = row("starts", "ms", &of(&[10.0, 12.0, 11.0]), &of(&[22.0, 21.0, 23.0]));
        assert_eq!(text, "| starts | 11.0 ms (p95 12.0) | 22.0 ms (p95 23.0) | **2.00×** |\n");
        assert_eq!(
            row("memory", "KB", &of(&[100.0]), &of(&[50.0])),
            "| memory | 100 KB | 50 KB | **0.50×** |\n"
        );
        assert_eq!(row("nothing", "ms", &of(&[]), &of(&[1.0])), "");
    }
}
