//! What a session uses, read from the outside.

use std::io;
use std::path::Path;

use wharf_holder::{linux, wire};
use wharf_model::{Home, Millis, Stats};

use crate::keep;

/// Whether the session's processes are seen from here: those of another host are not.
pub(crate) fn sees(home: &Path) -> bool {
    keep::read_ticket(home).is_ok_and(|ticket| ticket.holder.is_some())
}

/// Measures the session in a directory. What its processes use may have been told by its holder.
pub(crate) fn read(home: &Path, told: Option<wire::Usage>, last_input: Option<Millis>) -> io::Result<Stats> {
    let ticket = keep::read_ticket(home)?;
    let usage = ticket.holder.as_ref().map(|holder| linux::usage(&ticket.scope, holder)).transpose()?;
    let told = told.map(|wire::Usage { cpu, memory, processes }| linux::Usage { cpu, memory, processes });
    let usage = told.or(usage).unwrap_or_default();
    let log = home.join(Home::LOG);
    let (log_start, log_end) = wharf_log::Reader::bounds(&log)?;
    Ok(Stats {
        cpu: Millis(usage.cpu),
        memory: usage.memory,
        processes: usage.processes,
        log_start,
        log_end,
        last_output: last_change(&log),
        last_input,
    })
}

/// When the newest segment last grew.
fn last_change(log: &Path) -> Option<Millis> {
    let names = std::fs::read_dir(log).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let newest = names.filter(|path| path.extension().is_some_and(|ext| ext == "log")).max()?;
    let meta = newest.metadata().ok()?;
    (meta.len() > 0).then(|| meta.modified().ok().map(Millis::from)).flatten()
}
