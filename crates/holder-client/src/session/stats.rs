//! What a session uses, read from the outside.

use std::io;
use std::path::Path;

use wharf_holder::{linux, wire};
use wharf_model::{Home, Millis, Stats};

use super::records;

/// Whether its holder is asked too: beside the processes of a container it knows more of them than we do.
pub(super) fn asks(home: &Path) -> bool {
    records::read_ticket(home).is_ok_and(|ticket| ticket.holder.is_none() || ticket.spec.container.is_some())
}

/// Measures the session in a directory. What its processes use may have been told by its holder.
pub(super) fn read(
    home: &Path,
    told: Option<wire::ResourceUsage>,
    last_input: Option<Millis>,
) -> io::Result<Stats> {
    let ticket = records::read_ticket(home)?;
    let usage = ticket.holder.as_ref().map(|holder| linux::usage(&ticket.scope, holder)).transpose()?;
    let told_usage = told.map(|told| linux::Usage {
        cpu: told.cpu,
        memory: told.memory,
        processes: told.processes,
        io: told.io,
    });
    // What is seen from here counts; but what others' processes read and wrote, only the one beside them is told.
    let mut usage = usage.or(told_usage).unwrap_or_default();
    usage.io = usage.io.or(told_usage.and_then(|told| told.io));
    // Where it shares a network, what came and went is not its own.
    let container = ticket.spec.container.as_ref();
    let network =
        container.filter(|container| !container.shares_network()).and(told).and_then(|told| told.network);
    let log = home.join(Home::LOG);
    let (log_start, log_end) = wharf_log::Reader::bounds(&log)?;
    Ok(Stats {
        cpu: Millis(usage.cpu),
        memory: usage.memory,
        processes: usage.processes,
        log_start,
        log_end,
        last_output: wharf_log::last_written(&log).ok().flatten().map(Millis::from),
        last_input,
        io: usage.io,
        network,
    })
}
