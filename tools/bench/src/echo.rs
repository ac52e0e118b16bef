//! Measures the time from a key to its echo.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::contestant::{Contestant, Line};
use crate::course::{Course, Entry, settle};
use crate::create::row;
use crate::notes::now;
use crate::samples::Samples;
use crate::table::{Row, Table};
use crate::terminal::Terminal;

/// send → echo: over an open connection, in an attached terminal, by command.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let mut course = Course::new(entry, true)?;
    let rounds = if entry.quick { 200 } else { 5_000 };
    table.rows.push(connection(&mut course, "send → echo, open connection", rounds)?);
    table.rows.push(relayed(&mut course, rounds)?);
    table.rows.push(attached(&mut course, if entry.quick { 50 } else { 500 })?);
    table.rows.push(by_command(&mut course, if entry.quick { 20 } else { 200 })?);
    Ok(())
}

type Lines = Vec<(&'static str, Box<dyn Line>)>;

/// Lines to fresh sessions of everybody who has such a thing, with the floor's own.
fn lines(
    course: &mut Course,
    open: impl Fn(&dyn Contestant, &str) -> Result<Option<Box<dyn Line>>>,
) -> Result<Lines> {
    let id = course.number();
    let hand = course.floor.hand(&course.argv("echo", id, None))?;
    course.notes.from(id, crate::course::STEP_TIMEOUT)?;
    let mut lines: Lines = vec![("floor", Box::new(hand))];
    for who in course.all.clone().into_iter().filter(|who| who.name() != "floor") {
        let session = course.run(&*who, "echo", None)?;
        if let Some(line) = open(&*who, &session.name).with_context(|| who.name().to_owned())? {
            lines.push((who.name(), line));
        }
    }
    Ok(lines)
}

/// How many bytes are typed in a turn, one after the other. The first is not counted: it pays for what the contestant
/// before it left in the caches, and a server of a thousand sessions leaves nothing there of anybody else's.
const TURN_LEN: usize = 6;

/// Turns of some bytes each; letters change, so that no echo is taken for another.
fn race(mut lines: Lines, rounds: usize) -> Result<BTreeMap<&'static str, Samples>> {
    let mut all: BTreeMap<&str, Samples> = BTreeMap::new();
    let count = lines.len();
    for round in 0..rounds.div_ceil(TURN_LEN - 1) {
        for turn in 0..count {
            let (who, line) = &mut lines[(turn + round) % count];
            for byte in 0..TURN_LEN {
                let letter = b'A' + ((round * TURN_LEN + byte) % 26) as u8;
                let took = line.round_trip(letter).with_context(|| (*who).to_owned())?;
                if byte > 0 {
                    all.entry(*who).or_default().push(took.as_secs_f64() * 1e6);
                }
            }
        }
    }
    Ok(all)
}

pub(crate) fn connection(course: &mut Course, what: &str, rounds: usize) -> Result<Row> {
    let lines = lines(course, |who, session| who.line(session))?;
    Ok(row(what, &race(lines, rounds)?))
}

fn relayed(course: &mut Course, rounds: usize) -> Result<Row> {
    let lines = lines(course, |who, session| who.relayed_line(session))?;
    Ok(row("send → echo, written through the daemon", &race(lines, rounds)?))
}

fn attached(course: &mut Course, rounds: usize) -> Result<Row> {
    let lines = lines(course, |who, session| {
        let Some(command) = who.attach(session) else { return Ok(None) };
        let mut terminal = Terminal::start(&command)?;
        terminal.settle(Duration::from_millis(500))?;
        Ok(Some(Box::new(terminal) as Box<dyn Line>))
    })?;
    Ok(row("key → echo in an attached terminal", &race(lines, rounds)?))
}

fn by_command(course: &mut Course, rounds: usize) -> Result<Row> {
    let mut all: BTreeMap<&str, Samples> = BTreeMap::new();
    let mut sessions = Vec::new();
    for who in course.all.clone() {
        let session = course.run(&*who, "tell", None)?;
        sessions.push((who, session));
    }
    for round in 0..rounds {
        let count = sessions.len();
        for turn in 0..count {
            let (who, session): &(Rc<dyn Contestant>, _) = &sessions[(turn + round) % count];
            let Some(mut command) = who.send(&session.name, "x") else { continue };
            let began = now();
            let mut child = command.spawn()?;
            let note = course.hear(session).with_context(|| who.name().to_owned())?;
            child.wait()?;
            settle();
            all.entry(who.name()).or_default().push((note.when - began) as f64 / 1e3);
        }
    }
    Ok(row("send by command, until the application has read it", &all))
}
