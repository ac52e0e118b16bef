//! Measures the time from asking for a session until its command runs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::contestant::{Contestant, Creator};
use crate::course::{Course, Entry, STEP_TIMEOUT, settle};
use crate::notes::now;
use crate::samples::Samples;
use crate::table::{Row, Table, Unit};

/// create → the command runs: by command, over an open connection, a hundred at once.
///
/// The floor is the same in all of them, a C process that already runs: what it costs to start a program is part of
/// what a contestant's command costs.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let mut course = Course::new(entry, true)?;
    let rounds = if entry.quick { 20 } else { 200 };
    table.rows.push(by_command(&mut course, "create by command", rounds)?);
    table.rows.push(over_connection(&mut course, rounds)?);
    table.rows.push(at_once(&mut course, if entry.quick { 2 } else { 7 }, 100)?);
    Ok(())
}

/// The floor's process, to which every floor of this page is one write.
fn floor(course: &Course) -> Result<Box<dyn Creator>> {
    let mut ready = course.argv("ready", 0, None);
    ready.pop();
    course.floor.creator(&ready)?.context("the floor creates")
}

/// Creates that many sessions by command, at once, and returns how long it took until the last ran.
fn commands(course: &mut Course, who: &dyn Contestant, count: usize) -> Result<f64> {
    let ids: Vec<i32> = (0..count).map(|_| course.number()).collect();
    let mut commands: Vec<_> =
        ids.iter().map(|id| who.create(&format!("s{id}"), &course.argv("ready", *id, None))).collect();
    let began = now();
    let mut children = Vec::new();
    for command in &mut commands {
        children.push(command.spawn()?);
    }
    let micros = last_of(course, who.name(), &ids, began)?;
    for mut child in children {
        child.wait()?;
    }
    settle();
    for id in &ids {
        who.forget(&format!("s{id}"))?;
    }
    settle();
    Ok(micros)
}

/// The same over a connection.
fn requests(course: &mut Course, name: &str, creator: &mut dyn Creator, count: usize) -> Result<f64> {
    let ids: Vec<i32> = (0..count).map(|_| course.number()).collect();
    let began = now();
    for id in &ids {
        let argv = course.argv("ready", *id, None);
        creator.ask(&format!("s{id}"), &argv)?;
    }
    let micros = last_of(course, name, &ids, began)?;
    for _ in &ids {
        creator.answer()?;
    }
    settle();
    Ok(micros)
}

fn last_of(course: &mut Course, who: &str, ids: &[i32], began: i64) -> Result<f64> {
    let mut last = began;
    for id in ids {
        last = last.max(course.notes.from(*id, STEP_TIMEOUT).with_context(|| who.to_owned())?.when);
    }
    Ok((last - began) as f64 / 1e3)
}

pub(crate) fn by_command(course: &mut Course, what: &str, rounds: usize) -> Result<Row> {
    crowds(course, what, rounds, 1)
}

fn at_once(course: &mut Course, rounds: usize, count: usize) -> Result<Row> {
    crowds(course, &format!("{count} creates by command at once, until the last runs"), rounds, count)
}

fn crowds(course: &mut Course, what: &str, rounds: usize, count: usize) -> Result<Row> {
    let mut all: BTreeMap<&str, Samples> = BTreeMap::new();
    let mut floor = floor(course)?;
    for _ in 0..rounds {
        for who in course.shuffled() {
            let micros = if who.name() == "floor" {
                requests(course, "floor", &mut *floor, count)?
            } else {
                commands(course, &*who, count)?
            };
            all.entry(who.name()).or_default().push(micros);
        }
    }
    Ok(row(what, &all))
}

fn over_connection(course: &mut Course, rounds: usize) -> Result<Row> {
    let mut all: BTreeMap<&str, Samples> = BTreeMap::new();
    let mut ready = course.argv("ready", 0, None);
    ready.pop();
    let mut creators = Vec::new();
    for who in course.all.clone() {
        if let Some(creator) = who.creator(&ready)? {
            creators.push((who, creator));
        }
    }
    for round in 0..rounds {
        let count = creators.len();
        for turn in 0..count {
            let (who, creator) = &mut creators[(turn + round) % count];
            let micros = requests(course, who.name(), &mut **creator, 1)?;
            all.entry(who.name()).or_default().push(micros);
        }
    }
    Ok(row("create over an open connection", &all))
}

/// A row of latencies.
pub(crate) fn row(what: &str, all: &BTreeMap<&'static str, Samples>) -> Row {
    let mut row = Row::new(what, Unit::Micros);
    for (who, samples) in all {
        row.samples(who, samples);
    }
    row
}
