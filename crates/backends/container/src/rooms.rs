//! The two directories of a session that its container sees: the log, and the room in which its holder lives.
//!
//! The session's own directory stays out of a container's reach. What stands there decides what is run on this host when
//! the session is started again, and a container must not be able to say that.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use wharf_model::{ExitRecord, Failure, Home, Ticket};

use crate::far::Key;

/// The room's name in the session's directory.
const ROOM: &str = "room";

/// What a container sees in the place of the instance's directory.
const VEIL: &str = "veil";

/// A session's directory with its rooms.
#[derive(Debug, Clone)]
pub(crate) struct Rooms {
    home: PathBuf,
}

impl Rooms {
    /// Those of the session in a directory.
    pub(crate) fn of(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Where the holder lives: its socket, its exit record.
    pub(crate) fn room(&self) -> PathBuf {
        self.home.join(ROOM)
    }

    /// The session's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.home.join(Home::LOG)
    }

    /// The session's prompt, where it has one.
    pub(crate) fn prompt(&self) -> Option<PathBuf> {
        Some(self.home.join(Home::PROMPT)).filter(|path| path.exists())
    }

    /// A directory to hide the instance's own behind. It is empty but for where the prompt is mounted: a file system in
    /// memory would do as well, but some engines fill such a one with what it hides.
    pub(crate) fn veil(&self, state: &Path) -> Result<PathBuf, Failure> {
        let veil = self.home.join(VEIL);
        let prompt = self.prompt().and_then(|prompt| Some(veil.join(prompt.strip_prefix(state).ok()?)));
        let hang = || -> io::Result<()> {
            make(&veil, 0o755)?;
            if let Some(prompt) = prompt {
                fs::create_dir_all(prompt.parent().unwrap_or(&veil))?;
                fs::write(prompt, b"")?;
            }
            Ok(())
        };
        hang().map_err(|error| Failure::system(format!("cannot make {}", veil.display()), &error))?;
        Ok(veil)
    }

    /// Makes them for a run. With `shared`, another user may write there; the directory around them is ours alone.
    pub(crate) fn furnish(&self, run: u32, shared: bool) -> Result<(), Failure> {
        let furnish = || -> io::Result<()> {
            make(&self.home, 0o700)?;
            self.keep_record(run.saturating_sub(1))?;
            gone(fs::remove_dir_all(self.room()))?;
            let mode = if shared { 0o777 } else { 0o700 };
            make(&self.room(), mode)?;
            make(&self.log(), mode)?;
            // Where the log is mounted: made here, so that it need not be made by somebody with more rights.
            make(&self.room().join(Home::LOG), mode)?;
            for name in [Home::SOCKET, Home::EXIT] {
                gone(fs::remove_file(self.home.join(name)))?;
                symlink(Path::new(ROOM).join(name), self.home.join(name))?;
            }
            Ok(())
        };
        furnish().map_err(|error| Failure::system(format!("cannot furnish {}", self.home.display()), &error))
    }

    /// Makes what a run on another host has on this side: the log alone. What else there is, is there.
    pub(crate) fn furnish_far(&self) -> Result<(), Failure> {
        let furnish = || -> io::Result<()> {
            make(&self.home, 0o700)?;
            make(&self.log(), 0o700)?;
            for name in [Home::SOCKET, Home::EXIT] {
                gone(fs::remove_file(self.home.join(name)))?;
            }
            Ok(())
        };
        furnish().map_err(|error| Failure::system(format!("cannot furnish {}", self.home.display()), &error))
    }

    /// The record of an earlier run is a link into a room that is about to be cleared: it becomes a file.
    pub(crate) fn keep_record(&self, run: u32) -> io::Result<()> {
        let path = self.home.join(format!("exit.{run}.json"));
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
            match fs::read(&path) {
                Ok(record) => replace(&path, &record)?,
                Err(_) => fs::remove_file(&path)?,
            }
        }
        Ok(())
    }

    /// Writes the ticket.
    pub(crate) fn write_ticket(&self, ticket: &Ticket) -> Result<(), Failure> {
        let path = self.home.join(Home::TICKET);
        let json = serde_json::to_vec(ticket).map_err(io::Error::from);
        json.and_then(|json| replace(&path, &json))
            .map_err(|error| Failure::system(format!("cannot write {}", path.display()), &error))
    }

    /// Writes down an end that no holder could.
    pub(crate) fn write_exit(&self, record: &ExitRecord) {
        let path = self.home.join(Home::EXIT);
        let json = serde_json::to_vec(record).map_err(io::Error::from);
        if let Err(error) = json.and_then(|json| replace(&path, &json)) {
            tracing::warn!(path = %path.display(), %error, "the end of a session is not on disk");
        }
    }

    /// Nobody will ever write the exit record: its link goes, so that nothing takes it for one.
    pub(crate) fn unlink_exit(&self) {
        let path = self.home.join(Home::EXIT);
        if !path.exists() && fs::symlink_metadata(&path).is_ok() {
            let _ = fs::remove_file(path);
        }
    }

    /// After a start that failed nothing is left of what was made for it. The log of earlier runs is, and so is what the
    /// starter keeps in the directory.
    pub(crate) fn clear(&self, run: u32) {
        let _ = fs::remove_dir_all(self.room());
        let _ = fs::remove_dir_all(self.home.join(VEIL));
        for name in [Home::SOCKET, Home::EXIT] {
            let path = self.home.join(name);
            if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
                let _ = fs::remove_file(path);
            }
        }
        let door = self.home.join(Key::NAME);
        if door.exists() {
            let _ = fs::remove_file(self.home.join(Home::SOCKET));
            let _ = fs::remove_file(door);
        }
        if run <= 1 {
            let _ = fs::remove_dir_all(self.log());
            let _ = fs::remove_file(self.home.join(Home::TICKET));
            let _ = fs::remove_dir(&self.home);
        }
    }
}

/// Makes a directory with exactly this mode, whatever the mask is.
pub(crate) fn make(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub(crate) fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A file is there whole or not at all, and is ours alone.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, b"")?;
    fs::set_permissions(&new, Permissions::from_mode(0o600))?;
    fs::write(&new, bytes)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_keeps_the_record_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        let rooms = Rooms::of(&home);
        rooms.furnish(1, false).unwrap();
        assert!(!home.join(Home::EXIT).exists());
        fs::write(rooms.room().join(Home::EXIT), "{}").unwrap();
        assert!(home.join(Home::EXIT).exists());
        // As a restart does it.
        fs::rename(home.join(Home::EXIT), home.join("exit.1.json")).unwrap();
        rooms.furnish(2, false).unwrap();
        assert_eq!(fs::read(home.join("exit.1.json")).unwrap(), b"{}");
        assert!(!home.join(Home::EXIT).exists());
    }

    #[test]
    fn a_failed_start_leaves_nothing_but_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        let rooms = Rooms::of(&home);
        rooms.furnish(1, true).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&home), mode(&rooms.room()), mode(&rooms.log())), (0o700, 0o777, 0o777));
        rooms.clear(1);
        assert!(!home.exists());
        rooms.furnish(1, false).unwrap();
        fs::write(home.join(Home::PROMPT), "p").unwrap();
        rooms.clear(1);
        let left: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [Home::PROMPT]);
    }
}
