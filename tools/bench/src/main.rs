//! Wharf and its peers side by side, in interleaved rounds, as multiples of a bare C floor.

mod contestant;
mod course;
mod create;
mod descriptors;
mod drain;
mod dtach;
mod echo;
mod engines;
mod floor;
mod http;
mod kept;
mod notes;
mod paste;
mod place;
mod rival;
mod samples;
mod scale;
mod screen;
mod succession;
mod table;
mod terminal;
mod throughput;
mod tmux;
mod wharf;
mod workers;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::thread::sched_getaffinity;
use wharf_tool_support::flags::Flags;
use wharf_tool_support::instance;
use wharf_tool_support::step::{self, has, root};

use self::course::Entry;
use self::table::Table;

/// A part of the benchmark: its name, and what it measures.
type Stage = (&'static str, fn(&Entry, &mut Table) -> Result<()>);

const STAGES: &[Stage] = &[
    ("create", create::measure),
    ("echo", echo::measure),
    ("paste", paste::measure),
    ("throughput", throughput::measure),
    ("scale", scale::measure),
    ("descriptors", descriptors::measure),
    ("succession", succession::measure),
    ("engines", engines::measure),
];

/// Where the table stands in docs/benchmarks.md.
const BEGIN: &str = "<!-- begin table -->";
const END: &str = "<!-- end table -->";
/// Where that of the places stands.
const PLACES: (&str, &str) = ("<!-- begin places -->", "<!-- end places -->");

fn main() -> ExitCode {
    step::end("wharf-bench", run(Flags::new(std::env::args().skip(1).collect())))
}

/// `cargo xtask bench`
fn run(mut flags: Flags) -> Result<()> {
    let quick = flags.switch("quick");
    let write = flags.switch("write");
    let peers = flags.switch("peers");
    let built: Option<std::path::PathBuf> = flags.value("wharf")?;
    let before: Option<std::path::PathBuf> = flags.value("before")?;
    let only: Option<String> = flags.value("only")?;
    flags.finish()?;
    if let Some(name) = &only
        && !STAGES.iter().any(|(stage, _)| stage == name)
    {
        let names: Vec<&str> = STAGES.iter().map(|(name, _)| *name).collect();
        bail!("there is no stage {name:?}; there are {}", names.join(", "));
    }
    for peer in ["tmux", "dtach", "screen"].into_iter().filter(|peer| !has(peer)) {
        println!("{peer} is not here: its column stays empty");
    }
    let wharf = match built {
        Some(path) => Some(path),
        None if peers => None,
        None => Some(instance::build_release()?),
    };
    let entry = Entry { wharf, before, quick, processors: sched_getaffinity(None)? };
    let mut table = Table::default();
    for (name, measure) in STAGES.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        let began = Instant::now();
        measure(&entry, &mut table).with_context(|| format!("the stage {name}"))?;
        println!("{name}: {:.0} s", began.elapsed().as_secs_f64());
    }
    // Each of the two tables is one that was measured, or stays as it was.
    let rows = Some(table.markdown()).filter(|_| !table.rows.is_empty());
    for (text, marks) in [(rows, (BEGIN, END)), (table.places, PLACES)] {
        let Some(text) = text else { continue };
        println!("\n{text}");
        if write {
            into_page(&text, marks)?;
        }
    }
    Ok(())
}

fn into_page(table: &str, (begin, end): (&str, &str)) -> Result<()> {
    let path = root().join("docs/benchmarks.md");
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (before, rest) = page.split_once(begin).context("docs/benchmarks.md has no place for the table")?;
    let (_, after) = rest.split_once(end).context("docs/benchmarks.md has no end of the table")?;
    std::fs::write(&path, format!("{before}{begin}\n\n{table}\n{end}{after}"))?;
    println!("written to docs/benchmarks.md");
    Ok(())
}
