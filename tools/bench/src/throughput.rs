//! Measures a flood of output: rate, processor time, and the effect of readers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use wharf_tool_support::process;

use crate::contestant::{Contestant, Reader};
use crate::course::{Course, Entry, Running};
use crate::drain::Drain;
use crate::notes::Note;
use crate::samples::Samples;
use crate::table::{Cell, Row, Table, Unit};

/// How long a flood may take before the session is said to be blocked.
const FLOOD_TIMEOUT: Duration = Duration::from_secs(60);

/// Output as fast as it goes: processor time of the servers, the rate, and what readers do to both.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let rounds = if entry.quick { 2 } else { 7 };
    // A crowd's runs are shorter: they take longer, and must fit into a log of the default size.
    let size = |readers: u64| (if entry.quick { 64 << 20 } else { 256 << 20 }) / (1 + readers / 4);
    for readers in [0, 1, 10, 50] {
        let mut course = Course::new(entry, false)?;
        flood(&mut course, table, readers, size(readers), rounds)?;
    }
    let mut course = Course::new(entry, false)?;
    stalled(&mut course, table, size(0))
}

fn flood(course: &mut Course, table: &mut Table, readers: u64, size: u64, rounds: usize) -> Result<()> {
    let with = match readers {
        0 => "nobody watching".to_owned(),
        1 => "1 reader".to_owned(),
        many => format!("{many} readers"),
    };
    let mut cpu = Row::new(format!("server CPU, {with}"), Unit::CpuPerGigabyte);
    let mut whole = Row::new(format!("server and readers' CPU, {with}"), Unit::CpuPerGigabyte);
    let mut rate = Row::new(format!("rate, {with}"), Unit::Rate);
    let mut got = Row::new(format!("every reader got everything, {with}"), Unit::Rate);
    let mut all: BTreeMap<&str, [Samples; 3]> = BTreeMap::new();
    let mut sessions = Vec::new();
    for who in course.all.clone() {
        if readers > 1 && who.name() == "screen" {
            // A minute a megabyte is known by now.
            continue;
        }
        let session = course.run(&*who, "flood", Some(size))?;
        let drain = readers_of(&*who, &session, readers)?;
        sessions.push((who, session, drain));
    }
    for round in 0..rounds {
        for turn in 0..sessions.len() {
            let (who, session, drain) = &sessions[(turn + round) % sessions.len()];
            let before = drain.least();
            let run = one(course, &**who, session, drain, size).with_context(|| who.name().to_owned())?;
            let gigabytes = size as f64 / 1e9;
            let figures = all.entry(who.name()).or_default();
            figures[0].push(run.servers * 1e3 / gigabytes);
            figures[1].push((run.servers + run.readers) * 1e3 / gigabytes);
            figures[2].push(size as f64 / 1e6 / run.seconds);
            if readers > 0 {
                let complete = drain.least() - before >= size;
                // tmux sends what its screen looks like, and not what was printed.
                let words = match (complete, who.name()) {
                    (true, _) => "yes",
                    (false, "tmux" | "screen") => "no: a screen",
                    (false, _) => "no: bytes are lost",
                };
                got.cells.retain(|(name, cell)| {
                    name != &who.name() || matches!(cell, Cell::Words(old) if old != "yes")
                });
                if !got.cells.iter().any(|(name, _)| name == &who.name()) {
                    got.words(who.name(), words);
                }
            }
        }
    }
    for (who, [servers, both, speed]) in &all {
        cpu.samples(who, servers);
        whole.samples(who, both);
        rate.samples(who, speed);
    }
    table.rows.push(cpu);
    if readers > 0 {
        table.rows.push(whole);
    }
    table.rows.push(rate);
    if readers > 0 {
        table.rows.push(got);
    }
    Ok(())
}

struct Run {
    servers: f64,
    readers: f64,
    seconds: f64,
}

fn one(
    course: &mut Course,
    who: &dyn Contestant,
    session: &Running,
    drain: &Drain,
    size: u64,
) -> Result<Run> {
    let servers = who.servers();
    let before = (cpu(&servers), cpu(drain.processes()), drain.least());
    go(session)?;
    let note: Note = course.notes.from(session.id, FLOOD_TIMEOUT)?;
    // The end of it is still on its way to the log and to readers. Those of a screen never get all of it.
    let patience = if matches!(who.name(), "tmux" | "screen") { 500 } else { 10_000 };
    if drain.readers() > 0 {
        wait_until(Duration::from_millis(patience), || drain.least() - before.2 >= size);
    }
    std::thread::sleep(Duration::from_millis(100));
    Ok(Run {
        servers: cpu(&servers) - before.0,
        readers: cpu(drain.processes()) - before.1,
        seconds: (note.when - note.a) as f64 / 1e9,
    })
}

/// One reader that takes nothing: what does it do to the session, and to us?
fn stalled(course: &mut Course, table: &mut Table, size: u64) -> Result<()> {
    let mut rate = Row::new("rate, one stalled reader", Unit::Rate);
    let mut memory = Row::new("memory that one stalled reader costs", Unit::Kilobytes);
    for who in course.all.clone() {
        let session = course.run(&*who, "flood", Some(size))?;
        let Some(reader) = who.reader(&session.name)? else { continue };
        std::thread::sleep(Duration::from_millis(300));
        let before = who.private_memory();
        go(&session)?;
        match course.notes.from(session.id, Duration::from_secs(15)) {
            Ok(note) => {
                rate.figure(who.name(), size as f64 / 1e6 / ((note.when - note.a) as f64 / 1e9));
                memory.figure(who.name(), (who.private_memory() as f64 - before as f64) / 1024.0);
            }
            Err(_) => rate.words(who.name(), "blocked"),
        }
        drop(reader);
    }
    table.rows.push(rate);
    table.rows.push(memory);
    Ok(())
}

fn readers_of(who: &dyn Contestant, session: &Running, count: u64) -> Result<Drain> {
    let mut readers: Vec<Reader> = Vec::new();
    for _ in 0..count {
        readers.extend(who.reader(&session.name)?);
    }
    if count > 0 {
        // Attached clients paint a screen first.
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(Drain::start(readers))
}

fn go(session: &Running) -> Result<()> {
    let pid = Pid::from_raw(session.pid).context("a pid")?;
    Ok(kill_process(pid, Signal::USR1)?)
}

fn cpu(pids: &[i32]) -> f64 {
    pids.iter().filter_map(|pid| process::cpu(*pid).ok()).sum()
}

fn wait_until(within: Duration, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + within;
    while !condition() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
}
