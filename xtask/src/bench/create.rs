use std::collections::BTreeMap;

use anyhow::Result;

use super::contestant::Contestant;
use super::course::{Course, Entry, PATIENCE, settle};
use super::notes::now;
use super::samples::Samples;
use super::table::{Row, Table, Unit};

/// create → the command runs: by command, over an open connection, a hundred at once.
pub(super) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let mut course = Course::new(entry, true)?;
    let rounds = if entry.quick { 20 } else { 200 };
    table.rows.push(by_command(&mut course, "create by command", rounds)?);
    table.rows.push(over_connection(&mut course, rounds)?);
    table.rows.push(at_once(&mut course, if entry.quick { 2 } else { 7 }, 100)?);
    Ok(())
}

/// One create by command, in microseconds.
pub(super) fn once(course: &mut Course, who: &dyn Contestant) -> Result<f64> {
    let id = course.number();
    let name = format!("s{id}");
    let mut command = who.create(&name, &course.argv("ready", id, None));
    let began = now();
    let mut child = command.spawn()?;
    let note = course.notes.from(id, PATIENCE)?;
    child.wait()?;
    settle();
    who.forget(&name)?;
    Ok((note.when - began) as f64 / 1e3)
}

pub(super) fn by_command(course: &mut Course, what: &str, rounds: usize) -> Result<Row> {
    let mut all: BTreeMap<&str, Samples> = BTreeMap::new();
    for _ in 0..rounds {
        for who in course.shuffled() {
            let micros = once(course, &*who)?;
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
            let id = course.number();
            let name = format!("s{id}");
            let argv = course.argv("ready", id, None);
            let began = now();
            creator.ask(&name, &argv)?;
            let note = course.notes.from(id, PATIENCE)?;
            creator.answer()?;
            settle();
            who.forget(&name)?;
            all.entry(who.name()).or_default().push((note.when - began) as f64 / 1e3);
        }
    }
    Ok(row("create over an open connection", &all))
}

fn at_once(course: &mut Course, rounds: usize, count: usize) -> Result<Row> {
    let mut all: BTreeMap<&str, Samples> = BTreeMap::new();
    for _ in 0..rounds {
        for who in course.shuffled() {
            let ids: Vec<i32> = (0..count).map(|_| course.number()).collect();
            let mut commands: Vec<_> =
                ids.iter().map(|id| who.create(&format!("s{id}"), &course.argv("ready", *id, None))).collect();
            let began = now();
            let mut children = Vec::new();
            for command in &mut commands {
                children.push(command.spawn()?);
            }
            let mut last = began;
            for id in &ids {
                last = last.max(course.notes.from(*id, PATIENCE)?.when);
            }
            for mut child in children {
                child.wait()?;
            }
            settle();
            for id in &ids {
                who.forget(&format!("s{id}"))?;
            }
            all.entry(who.name()).or_default().push((last - began) as f64 / 1e3);
        }
    }
    Ok(row(&format!("{count} creates at once, until the last runs"), &all))
}

/// A row of latencies.
pub(super) fn row(what: &str, all: &BTreeMap<&'static str, Samples>) -> Row {
    let mut row = Row::new(what, Unit::Micros);
    for (who, samples) in all {
        row.samples(who, samples);
    }
    row
}
