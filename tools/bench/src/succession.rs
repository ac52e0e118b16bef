//! Three hundred sessions that are created one after the other and stay: what a table that grows on the way would cost.

use anyhow::{Context, Result};

use crate::course::{Course, Entry, STEP_TIMEOUT, settle};
use crate::notes::now;
use crate::samples::Samples;
use crate::table::{Row, Table, Unit};

/// How many of the slowest are named by their place in the succession.
const MAX_NAMED: usize = 5;

/// create → the command runs, over an open connection, while those before it live on.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let count = if entry.quick { 30 } else { 300 };
    let mut course = Course::new(entry, false)?;
    let Some(who) = course.all.iter().find(|who| who.name() == "wharf").cloned() else { return Ok(()) };
    let mut creator = who.creator(&[])?.context("wharf creates over a connection")?;
    let (mut samples, mut each) = (Samples::default(), Vec::new());
    for number in 1..=count {
        let id = course.number();
        let began = now();
        creator.ask(&format!("s{id}"), &course.argv("idle", id, None))?;
        let micros = (course.notes.from(id, STEP_TIMEOUT)?.when - began) as f64 / 1e3;
        creator.answer()?;
        samples.push(micros);
        each.push((number, micros));
        settle();
    }
    each.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let slowest: Vec<String> = each
        .iter()
        .take(MAX_NAMED)
        .map(|(number, micros)| format!("{number}th {:.1} ms", micros / 1e3))
        .collect();
    let share = |share: f64| samples.percentile(share).unwrap_or_default() / 1e3;
    let words =
        format!("p50 {:.1} ms, p99 {:.1} ms; the slowest: {}", share(0.5), share(0.99), slowest.join(", "));
    println!("{count} creates that stay: {words}");
    let mut row = Row::new(format!("{count} creates that stay, one after the other"), Unit::Micros);
    row.words(who.name(), words);
    table.rows.push(row);
    Ok(())
}
