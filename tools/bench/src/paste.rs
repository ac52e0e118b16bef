//! Measures a paste of one megabyte, and whether it arrives whole.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use crate::contestant::Contestant;
use crate::course::{Course, Entry, STEP_TIMEOUT, settle};
use crate::create::row;
use crate::notes::{Note, now};
use crate::samples::Samples;
use crate::table::{Row, Table};

/// What is pasted.
const PASTE_LEN: usize = 1 << 20;

/// How long a paste may take before bytes are said to be lost.
const PASTE_TIMEOUT: Duration = Duration::from_secs(8);

/// A megabyte typed at an application in raw mode, until it has read the last byte, and whether it was the same.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let mut course = Course::new(entry, true)?;
    let rounds = if entry.quick { 3 } else { 25 };
    let text: Vec<u8> = (0..PASTE_LEN).map(|at| b'a' + (at % 26) as u8).collect();
    let sum = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let file = course.place.path().join("paste");
    std::fs::write(&file, &text)?;
    let good = |note: &Note| note.a == PASTE_LEN as i64 && note.b as u64 == sum;

    let mut open: BTreeMap<&str, Samples> = BTreeMap::new();
    let mut command: BTreeMap<&str, Samples> = BTreeMap::new();
    let mut lost: Vec<(&'static str, bool)> = Vec::new();
    for _ in 0..rounds {
        let id = course.number();
        let mut hand = course.floor.hand(&course.argv("sink", id, Some(PASTE_LEN as u64)))?;
        course.notes.from(id, STEP_TIMEOUT)?;
        let began = hand.paste(PASTE_LEN)?;
        let note = course.notes.from(id, PASTE_TIMEOUT)?;
        for all in [&mut open, &mut command] {
            all.entry("floor").or_default().push((note.when - began) as f64 / 1e3);
        }
        drop(hand);
        for who in course.shuffled() {
            for connected in [true, false] {
                if lost.contains(&(who.name(), connected)) {
                    continue;
                }
                match once(&mut course, &*who, connected, &text, &file)? {
                    Outcome::Cannot => {}
                    Outcome::Took(note, began) if good(&note) => {
                        let all = if connected { &mut open } else { &mut command };
                        all.entry(who.name()).or_default().push((note.when - began) as f64 / 1e3);
                    }
                    Outcome::Took(..) | Outcome::Lost => lost.push((who.name(), connected)),
                }
                settle();
            }
        }
    }
    table.rows.push(finish(row("1 MB paste, open connection", &open), &lost, true));
    table.rows.push(finish(row("1 MB paste by command", &command), &lost, false));
    Ok(())
}

enum Outcome {
    Took(Note, i64),
    Lost,
    Cannot,
}

fn once(
    course: &mut Course,
    who: &dyn Contestant,
    connected: bool,
    text: &[u8],
    file: &std::path::Path,
) -> Result<Outcome> {
    if who.name() == "floor" {
        return Ok(Outcome::Cannot);
    }
    let session = course.run(who, "sink", Some(PASTE_LEN as u64))?;
    let mut children = Vec::new();
    let began;
    if connected {
        let Some(mut line) = who.paste_line(&session.name)? else { return Ok(Outcome::Cannot) };
        began = now();
        line.paste(text)?;
    } else {
        let Some(commands) = who.paste(&session.name, file)? else { return Ok(Outcome::Cannot) };
        began = now();
        for mut command in commands {
            // dtach's client is done when its socket has taken the text; others when the server has.
            children.push(command.spawn()?);
            if let Some(child) = children.last_mut() {
                child.wait()?;
            }
        }
    }
    let outcome = match course.notes.from(session.id, PASTE_TIMEOUT) {
        Ok(note) => Outcome::Took(note, began),
        Err(_) => Outcome::Lost,
    };
    if let Some(pid) = rustix::process::Pid::from_raw(session.pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    settle();
    who.forget(&session.name)?;
    Ok(outcome)
}

fn finish(mut row: Row, lost: &[(&'static str, bool)], connected: bool) -> Row {
    for (who, _) in lost.iter().filter(|(_, way)| *way == connected) {
        row.cells.retain(|(name, _)| name != who);
        row.words(who, "loses bytes");
    }
    row
}
