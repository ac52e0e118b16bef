//! The two files that outlive a holder: the ticket and the exit record.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use wharf_boundary::{Dir, SessionDir};
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

/// A file is there whole or not at all. Its mode is that of the umask: who reads it may be another user than we are in
/// a container. What stands in the place of the new one is removed or put aside, never written to.
fn replace(home: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let (dir, new) = (Dir::open(home)?, format!(".{name}.new"));
    if dir.remove(&new).is_err() {
        dir.put_aside(&new)?;
    }
    let temporary = home.join(&new);
    let write = || -> io::Result<()> {
        let mut file = fs::File::options().write(true).create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        fs::rename(&temporary, home.join(name))
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_stands_in_the_place_of_a_new_file_is_not_written_to() {
        let root = tempfile::tempdir().unwrap();
        let (home, precious) = (root.path().join("home"), root.path().join("precious"));
        fs::create_dir(&home).unwrap();
        fs::write(&precious, "p").unwrap();
        let new = home.join(".record.new");
        for how in ["a link", "a link to nowhere", "a second name", "a directory"] {
            match how {
                "a link" => symlink(&precious, &new).unwrap(),
                "a link to nowhere" => symlink(root.path().join("nowhere"), &new).unwrap(),
                "a second name" => fs::hard_link(&precious, &new).unwrap(),
                _ => fs::create_dir(&new).unwrap(),
            }
            replace(&home, "record", b"text").unwrap_or_else(|error| panic!("{how}: {error}"));
            let there = home.join("record");
            assert!(fs::symlink_metadata(&there).unwrap().is_file(), "{how}");
            assert_eq!(fs::read_to_string(&there).unwrap(), "text", "{how}");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "p", "{how}");
            assert!(!root.path().join("nowhere").exists(), "{how}");
        }
    }
}
