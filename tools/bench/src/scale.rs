//! Measures memory, `ls`, last lines, echo and create with up to a thousand sessions.

use std::collections::BTreeMap;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::contestant::Contestant;
use crate::course::{Course, Entry, Running, settle};
use crate::create::{by_command, row};
use crate::echo::connection;
use crate::notes::now;
use crate::samples::Samples;
use crate::table::{Row, Table, Unit};

/// The machine has 4,096 terminals; these are left out of the largest crowd.
const SMALL: &[&str] = &["floor", "screen"];

/// From one session to a thousand: memory, `ls`, last lines, and what a crowd does to echo and create.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let mut course = Course::new(entry, true)?;
    let steps: &[usize] = if entry.quick { &[1, 10, 50] } else { &[1, 10, 100, 1_000] };
    let rounds = if entry.quick { 10 } else { 50 };
    let mut crowd: BTreeMap<&str, Vec<Running>> = BTreeMap::new();
    let mut first: BTreeMap<&str, u64> = BTreeMap::new();
    for step in steps {
        let mut memory = Row::new(format!("memory of each further idle session, at {step}"), Unit::Kilobytes);
        for who in course.all.clone() {
            if who.name() == "floor" || *step > 100 && SMALL.contains(&who.name()) {
                continue;
            }
            let sessions = crowd.entry(who.name()).or_default();
            while sessions.len() < *step {
                sessions.push(course.run(&*who, "idle", None)?);
            }
            let now = private(&who);
            let one = *first.entry(who.name()).or_insert(now);
            if *step > 1 {
                memory.figure(who.name(), (now as f64 - one as f64) / 1024.0 / (*step - 1) as f64);
            } else {
                memory.figure(who.name(), now as f64 / 1024.0);
            }
        }
        if *step == 1 {
            "memory of the first session, with its server".clone_into(&mut memory.what);
        }
        table.rows.push(memory);
        if *step > 1 {
            let last = |who: &Rc<dyn Contestant>| {
                crowd.get(who.name()).and_then(|all| all.last()).map(|session| session.name.clone())
            };
            table.rows.push(commands(&course, &format!("`ls` at {step}"), rounds, |who| who.list())?);
            let tail = format!("last 50 lines at {step}");
            let tails = |who: &Rc<dyn Contestant>| {
                if who.name() == "floor" { who.tail("") } else { who.tail(&last(who)?) }
            };
            table.rows.push(commands(&course, &tail, rounds, tails)?);
            table.rows.push(connection(&mut course, &format!("send → echo at {step}"), rounds * 10)?);
            table.rows.push(by_command(&mut course, &format!("create by command at {step}"), rounds)?);
        }
    }
    let most = steps.last().copied().unwrap_or(1);
    for what in ["send → echo", "create by command", "`ls`"] {
        table.rows.push(growth(table, what, 10, most));
    }
    drop(crowd);
    drop(course);
    history(entry, table)
}

fn growth(table: &Table, what: &str, from: usize, to: usize) -> Row {
    let mut row = Row::new(format!("growth of {what}, {from} → {to} sessions"), Unit::Growth);
    for who in ["wharf", "dtach", "tmux"] {
        let at = |count: usize| table.find(&format!("{what} at {count}"), who);
        if let (Some(few), Some(many)) = (at(from), at(to)) {
            row.figure(who, many / few);
        }
    }
    row
}

fn commands(
    course: &Course,
    what: &str,
    rounds: usize,
    command: impl Fn(&Rc<dyn Contestant>) -> Option<Command>,
) -> Result<Row> {
    let mut all: BTreeMap<&str, Samples> = BTreeMap::new();
    for round in 0..rounds {
        let count = course.all.len();
        for turn in 0..count {
            let who = &course.all[(turn + round) % count];
            let Some(mut command) = command(who) else { continue };
            let began = now();
            command.status().with_context(|| who.name().to_owned())?;
            all.entry(who.name()).or_default().push((now() - began) as f64 / 1e3);
            settle();
        }
    }
    Ok(row(what, &all))
}

/// Sessions that have printed 2,000 lines.
fn history(entry: &Entry, table: &mut Table) -> Result<()> {
    let mut course = Course::new(entry, true)?;
    let count = if entry.quick { 5 } else { 50 };
    let mut row = Row::new("memory of each further session with 2,000 lines", Unit::Kilobytes);
    for who in course.all.clone().into_iter().filter(|who| who.name() != "floor") {
        let mut sessions = vec![course.run(&*who, "idle", Some(2_000))?];
        let one = private(&who);
        for _ in 0..count {
            sessions.push(course.run(&*who, "idle", Some(2_000))?);
        }
        row.figure(who.name(), (private(&who) as f64 - one as f64) / 1024.0 / f64::from(count));
    }
    table.rows.push(row);
    Ok(())
}

/// Private memory of a contestant's servers, once they have dealt with what they were sent last.
fn private(who: &Rc<dyn Contestant>) -> u64 {
    std::thread::sleep(Duration::from_millis(500));
    who.private_memory()
}
