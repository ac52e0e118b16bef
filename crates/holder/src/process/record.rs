//! The two files that outlive a holder: the ticket and the exit record.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use wharf_boundary::SessionDir;
use wharf_model::{ExitRecord, Home, Millis, ProcessIdentity, Scope};

/// What the holder adds to the ticket that it was given.
#[derive(Serialize)]
struct Added<'a> {
    holder: &'a ProcessIdentity,
    command: &'a ProcessIdentity,
    scope: &'a Scope,
    started: Millis,
}

/// Writes the ticket: the starter's JSON object with our own fields before its own.
///
/// The object is not parsed: it holds what the starter wants to find again, and is none of our business.
pub(super) fn write_ticket(
    home: &Path,
    given: &[u8],
    holder: &ProcessIdentity,
    command: &ProcessIdentity,
    scope: &Scope,
    started: Millis,
) -> io::Result<()> {
    let mut json = serde_json::to_vec(&Added { holder, command, scope, started })?;
    let rest = given.strip_prefix(b"{").filter(|rest| !rest.starts_with(b"}"));
    let rest =
        rest.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the ticket is not a JSON object"))?;
    json.pop();
    json.push(b',');
    json.extend_from_slice(rest);
    replace(home, Home::TICKET, &json)
}

/// Writes the exit record.
pub(super) fn write_exit(home: &Path, record: &ExitRecord) -> io::Result<()> {
    replace(home, Home::EXIT, &serde_json::to_vec(record)?)
}

/// Writes the exit record where there is no room for a file.
pub(super) fn write_exit_in_brief(home: &Path, record: &ExitRecord) -> io::Result<()> {
    SessionDir::open(home)?.write_exit_in_brief(&record.brief())
}

/// A file is there whole or not at all.
fn replace(home: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = home.join(format!(".{name}.new"));
    let replaced = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, home.join(name)));
    replaced.inspect_err(|_| drop(fs::remove_file(&temporary)))
}
