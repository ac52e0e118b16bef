//! Measures which descriptors each contestant leaks into a session.

use anyhow::Result;

use crate::course::{Course, Entry, STEP_TIMEOUT};
use crate::table::{Row, Table, Unit};

/// Which descriptors a session is handed beyond its own three, with ten others beside it.
pub(crate) fn measure(entry: &Entry, table: &mut Table) -> Result<()> {
    let mut course = Course::new(entry, false)?;
    let own = own();
    let mut row = Row::new("descriptors handed to a session beyond its three", Unit::Growth);
    for who in course.all.clone() {
        let mut others = Vec::new();
        for _ in 0..10 {
            others.push(course.run(&*who, "idle", None)?);
        }
        let id = course.number();
        let name = format!("s{id}");
        let mut child = who.create(&name, &course.argv("fds", id, None)).spawn()?;
        let note = course.notes.from(id, STEP_TIMEOUT)?;
        child.wait()?;
        // What we were started with ourselves is the caller's, and nobody's doing.
        let foreign: Vec<&str> =
            note.text.split_whitespace().filter(|entry| !own.iter().any(|own| own == entry)).collect();
        let words = if foreign.is_empty() { "none".to_owned() } else { foreign.join(", ") };
        row.words(who.name(), words);
    }
    table.rows.push(row);
    Ok(())
}

/// Our own descriptors, in the words of `bench/command.c`.
fn own() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let shown = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        Some(format!("{}={}", entry.file_name().to_str()?, target.display()))
    };
    entries.flatten().filter_map(shown).collect()
}
