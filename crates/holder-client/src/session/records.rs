//! What is on disk of a session: its ticket and its exit record.

use std::io;
use std::path::Path;

use wharf_boundary::SessionDir;
use wharf_model::{ExitRecord, Home, Text, Ticket};

/// Reads a session's ticket.
pub fn read_ticket(dir: &Path) -> io::Result<Ticket> {
    let path = dir.join(Home::TICKET);
    let bytes =
        SessionDir::open(dir).and_then(|dir| dir.read_ticket()).map_err(|error| named(&path, &error))?;
    let mut ticket: Ticket = serde_json::from_slice(&bytes).map_err(|error| named(&path, &error.into()))?;
    // The directory is where it was found, wherever it stood when it was written.
    ticket.dir = Text::from(dir);
    Ok(ticket)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The exit record of a run. A restart that was interrupted has put it aside under the run's number.
pub fn read_exit(dir: &Path, run: u32) -> Option<ExitRecord> {
    let dir = SessionDir::open(dir).ok()?;
    let parse = |read: io::Result<Option<Vec<u8>>>| serde_json::from_slice(&read.ok()??).ok();
    parse(dir.read_exit()).or_else(|| parse(dir.read_exit_of(run)))
}

/// Whether there is an exit record, whoever wrote it.
pub(super) fn has_exit(dir: &Path) -> bool {
    SessionDir::open(dir).is_ok_and(|dir| dir.has_exit())
}

/// Puts aside the exit record of a session that lives: it is not its holder's, and nobody shall believe it later.
pub(super) fn put_forged_exit_aside(home: &Path) {
    let aside = || -> io::Result<()> {
        let dir = SessionDir::open(home)?;
        if dir.has_exit() && !dir.has_room() {
            dir.own().put_aside(Home::EXIT)?;
        }
        Ok(())
    };
    // What cannot be put aside is replaced at its end.
    let _ = aside();
}

/// The exit record as it stands now.
pub(super) fn read_exit_now(dir: &Path) -> Option<ExitRecord> {
    serde_json::from_slice(&SessionDir::open(dir).ok()?.read_exit().ok()??).ok()
}
