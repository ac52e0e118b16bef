//! Reads and writes a session's small files: ticket, exit record, directory and name links.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wharf_boundary::{Dir, MAX_RECORD_LEN, SessionDir};
use wharf_model::{ExitRecord, Failure, Home, Name, SessionId, Ticket};

use crate::instance::shared::random;
use crate::{Result, platform};

/// Makes a directory that is the user's alone, whatever the umask says.
pub(crate) fn private_dir(path: &Path) -> Result<()> {
    let named = |error| Failure::system(format!("cannot make {}", path.display()), &error);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    // With an umask that takes the owner's own rights, a parent is made that cannot be entered: mend it and go on.
    if made.is_err() {
        for part in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(part) {
                Ok(()) => fs::set_permissions(part, Permissions::from_mode(0o700)).map_err(named)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Only the last one matters: `/` and the like exist and may not be made.
                Err(error) if part == path => return Err(named(error)),
                Err(_) => {}
            }
        }
    }
    fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(named)
}

/// Makes the directories of an instance.
pub(crate) fn create_instance_dirs(home: &Home) -> Result<()> {
    private_dir(home.state())?;
    for dir in [home.sessions(), home.names()] {
        if !dir.is_dir() {
            make_spread_dir(home.state(), &dir);
        }
        private_dir(&dir)?;
    }
    Ok(())
}

/// Makes a directory that shares its part of the disk with nobody, if that can be. The name at its making counts for
/// where it goes, so instances that come and go would all have the same place by the same name.
fn make_spread_dir(parent: &Path, dir: &Path) {
    let new = parent.join(format!(".{:016x}", random().unwrap_or_default()));
    let made = platform::with_spread_dirs(parent, || DirBuilder::new().mode(0o700).create(&new));
    // Not over one that another daemon has just made, and may be about to use.
    if made.is_ok() && renameat_with(CWD, &new, CWD, dir, RenameFlags::NOREPLACE).is_err() {
        let _ = fs::remove_dir(&new);
    }
}

/// Makes one session's directory; its parent exists.
pub(crate) fn session_dir(path: &Path) -> Result<()> {
    let named = |error| Failure::system(format!("cannot make {}", path.display()), &error);
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(named),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(named(error)),
    }
}

/// Writes a file that is the user's alone, so that a reader sees the old one or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(dir), Some(name)) => Dir::open(dir)?.replace(name, bytes, 0o600),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    write().map_err(|error| Failure::system(format!("cannot write {}", path.display()), &error))
}

/// Writes plain data as JSON, as [`replace`] does.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let json = serde_json::to_vec(value)
        .map_err(|error| Failure::new(wharf_model::Code::Internal, format!("{}: {error}", path.display())))?;
    replace(path, &json)
}

/// Reads JSON; `None` where there is no such file. Something else in its place is an error, and not waited for.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let bytes = match Dir::open(dir).and_then(|dir| dir.read(name, MAX_RECORD_LEN)) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Failure::system(format!("cannot read {}", path.display()), &error)),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Failure::new(wharf_model::Code::Internal, format!("cannot read {}: {error}", path.display()))
    })
}

/// The ticket in a session's directory; `None` where there is none.
pub(crate) fn ticket(dir: &Path) -> Result<Option<Ticket>> {
    read_json(&dir.join(Home::TICKET))
}

/// The exit record in a session's directory; `None` where there is none. What a session put in its place is none either:
/// then its backend says what became of it.
pub(crate) fn exit(dir: &Path) -> Result<Option<ExitRecord>> {
    let path = dir.join(Home::EXIT);
    let odd = |error: &dyn std::fmt::Display| {
        tracing::warn!(path = %path.display(), %error, "an exit record is none");
        Ok(None)
    };
    match SessionDir::open(dir).and_then(|dir| dir.read_exit()) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => serde_json::from_slice(&bytes).or_else(|error| odd(&error)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        // Whoever holds a session can take our right to read what he wrote.
        Err(error)
            if wharf_boundary::is_hostile(&error) || error.kind() == io::ErrorKind::PermissionDenied =>
        {
            odd(&error)
        }
        Err(error) => Err(Failure::system(format!("cannot read {}", path.display()), &error)),
    }
}

/// Writes the exit record of a session, in brief where the disk has no room for all of it.
pub(crate) fn write_exit(dir: &Path, exit: &ExitRecord) -> Result<()> {
    let path = dir.join(Home::EXIT);
    let json = serde_json::to_vec(exit)
        .map_err(|error| Failure::new(wharf_model::Code::Internal, format!("{}: {error}", path.display())))?;
    SessionDir::open(dir)
        .and_then(|dir| dir.write_exit(&json, &exit.brief()))
        .map_err(|error| Failure::system(format!("cannot write {}", path.display()), &error))
}

/// Whether a session has an exit record.
pub(crate) fn has_exit(dir: &Path) -> bool {
    SessionDir::open(dir).is_ok_and(|dir| dir.has_exit())
}

/// Removes a session's directory. The ticket goes first: what is left after a crash is nobody's session.
pub(crate) fn remove_session(dir: &Path) -> Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::system(format!("cannot remove {}", dir.display()), &error))
        }
        _ => Ok(()),
    };
    let (Some(sessions), Some(name)) = (dir.parent(), dir.file_name()) else {
        return gone(Err(io::ErrorKind::InvalidInput.into()));
    };
    gone(fs::remove_file(dir.join(Home::TICKET)))?;
    // However deep what the session left is, and whoever still writes there.
    gone(Dir::open(sessions).and_then(|sessions| sessions.remove_tree(name)))
}

/// Claims a name: exactly one of many wins. `false` where it is taken.
pub(crate) fn claim_link(home: &Home, name: &Name, id: &SessionId) -> Result<bool> {
    match symlink(target(id), home.name(name)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Failure::system(format!("cannot claim the name {name}"), &error)),
    }
}

/// Points a name at a session in one step, whatever it pointed at.
pub(crate) fn point_link(home: &Home, name: &Name, id: &SessionId) -> Result<()> {
    let new = home.names().join(format!(".{id}"));
    let point = || -> io::Result<()> {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        symlink(target(id), &new)?;
        fs::rename(&new, home.name(name))
    };
    point().map_err(|error| Failure::system(format!("cannot point the name {name} at {id}"), &error))
}

/// The session that a name points at.
pub(crate) fn linked(home: &Home, name: &Name) -> Option<SessionId> {
    let target = fs::read_link(home.name(name)).ok()?;
    target.file_name()?.to_str()?.parse().ok()
}

/// Frees a name, if it is this session's.
pub(crate) fn free_link(home: &Home, name: &Name, id: &SessionId) {
    if linked(home, name).as_ref() == Some(id) {
        // It may have gone by itself; a link that stays is found by gc.
        let _ = fs::remove_file(home.name(name));
    }
}

fn target(id: &SessionId) -> String {
    format!("../sessions/{id}")
}
