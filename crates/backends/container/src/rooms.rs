//! The two directories of a session that its container sees: the log, and the room in which its holder lives.
//!
//! The session's own directory stays out of a container's reach. What stands there decides what is run on this host when
//! the session is started again, and a container must not be able to say that. What stands in the room and in the log is
//! the container's: it is reached through a [`SessionDir`] alone, and nothing there is trusted, followed or waited for.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use wharf_boundary::{Dir, Kind, SessionDir};
use wharf_model::{ExitRecord, Failure, Home, Ticket};

use crate::body::worktree;
use crate::remote::ProxyLock;

/// The room's name in the session's directory.
pub(crate) const ROOM: &str = "room";

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

    /// The session's directory itself.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Where the holder lives: its socket, its exit record. For the engine, which mounts it, and for nobody else.
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

    /// Makes them for a run. With `shared`, another user may write there; the directory around them is ours alone. The room
    /// is a new one: what an earlier run's container still holds is another directory.
    pub(crate) fn furnish(&self, run: u32, other_user: bool) -> Result<(), Failure> {
        let furnish = || -> io::Result<()> {
            make(&self.home, 0o700)?;
            self.keep_record(run.saturating_sub(1))?;
            let own = Dir::open(&self.home)?;
            let mode = if other_user { 0o777 } else { 0o700 };
            let (room, old) = new_room(&own, mode)?;
            if own.kind(Home::LOG)?.is_some_and(|kind| kind != Kind::Directory) {
                own.remove(Home::LOG)?;
            }
            make_in(&own, Home::LOG, mode)?;
            // Where the log is mounted: made here, so that it need not be made by somebody with more rights.
            make_in(&room, Home::LOG, mode)?;
            link_in(&own, &[Home::SOCKET, Home::EXIT])?;
            discard(&own, old);
            Ok(())
        };
        furnish().map_err(|error| Failure::system(format!("cannot furnish {}", self.home.display()), &error))
    }

    /// Makes what a run on another host has on this side: the log alone. What else there is, is there.
    pub(crate) fn create_remote(&self) -> Result<(), Failure> {
        let furnish = || -> io::Result<()> {
            make(&self.home, 0o700)?;
            let own = Dir::open(&self.home)?;
            make_in(&own, Home::LOG, 0o700)?;
            for name in [Home::SOCKET, Home::EXIT] {
                own.remove(name)?;
            }
            Ok(())
        };
        furnish().map_err(|error| Failure::system(format!("cannot furnish {}", self.home.display()), &error))
    }

    /// The record of an earlier run is a link into a room that is about to be cleared: it becomes a file of ours.
    pub(crate) fn keep_record(&self, run: u32) -> io::Result<()> {
        let session = SessionDir::open(&self.home)?;
        let name = format!("exit.{run}.json");
        if session.own().kind(&name)? == Some(Kind::Link) {
            match session.read_exit_of(run).ok().flatten().filter(|bytes| parsed(bytes).is_some()) {
                Some(record) => session.own().replace(&name, &record, 0o600)?,
                None => drop(session.own().remove(&name)?),
            }
        }
        Ok(())
    }

    /// The exit record of a run, where there is one that can be read as such. What was written by a container is read
    /// once: from then on it is a file of ours, whatever becomes of the room.
    pub(crate) fn record(&self, run: u32) -> Option<ExitRecord> {
        let session = SessionDir::open(&self.home).ok()?;
        if let Some(bytes) = session.read_exit().ok().flatten()
            && let Some(record) = parsed(&bytes)
        {
            let own = session.own();
            if own.kind(Home::EXIT).ok().flatten() == Some(Kind::Link)
                && let Err(error) = own.replace(Home::EXIT, &bytes, 0o600)
            {
                tracing::warn!(dir = %self.home.display(), %error, "the end of a session is not on disk");
            }
            return Some(record);
        }
        parsed(&session.read_exit_of(run).ok().flatten()?)
    }

    /// Whether there is an exit record that can be read as such. Anything else in its place is none: then the engine alone knows the
    /// end, and what it knows it from must stay.
    pub(crate) fn has_record(&self) -> bool {
        let read = SessionDir::open(&self.home).and_then(|session| session.read_exit());
        read.ok().flatten().is_some_and(|bytes| parsed(&bytes).is_some())
    }

    /// Writes the ticket.
    pub(crate) fn write_ticket(&self, ticket: &Ticket) -> Result<(), Failure> {
        let path = self.home.join(Home::TICKET);
        let json = serde_json::to_vec(ticket).map_err(io::Error::from);
        json.and_then(|json| Dir::open(&self.home)?.replace(Home::TICKET, &json, 0o600))
            .map_err(|error| Failure::system(format!("cannot write {}", path.display()), &error))
    }

    /// Writes down an end that no holder could.
    pub(crate) fn write_exit(&self, record: &ExitRecord) {
        let json = serde_json::to_vec(record).map_err(io::Error::from);
        let written = json.and_then(|json| Dir::open(&self.home)?.replace(Home::EXIT, &json, 0o600));
        if let Err(error) = written {
            tracing::warn!(dir = %self.home.display(), %error, "the end of a session is not on disk");
        }
    }

    /// Nobody will ever write the exit record: its link goes, so that nothing takes it for one.
    pub(crate) fn unlink_exit(&self) {
        if let Ok(own) = Dir::open(&self.home)
            && own.kind(Home::EXIT).ok().flatten() == Some(Kind::Link)
        {
            let _ = own.remove(Home::EXIT);
        }
    }

    /// After a start that failed nothing is left of what was made for it. The log of earlier runs is, and so is what the
    /// starter keeps in the directory. It may take as long as what a container has put there: not for the daemon's thread.
    pub(crate) fn clear(&self, run: u32) {
        let Ok(own) = Dir::open(&self.home) else { return };
        let is = |name: &str, kind: Kind| own.kind(name).ok().flatten() == Some(kind);
        let gone = |result: io::Result<()>| {
            if let Err(error) = result {
                tracing::warn!(dir = %self.home.display(), %error, "a failed start left something");
            }
        };
        gone(own.remove_tree(ROOM));
        gone(own.remove_tree(VEIL));
        worktree::clear(&self.home);
        for name in [Home::SOCKET, Home::EXIT] {
            if is(name, Kind::Link) {
                gone(own.remove(name).map(drop));
            }
        }
        if is(ProxyLock::NAME, Kind::File) {
            gone(own.remove(Home::SOCKET).map(drop));
            gone(own.remove(ProxyLock::NAME).map(drop));
        }
        if run <= 1 {
            gone(own.remove_tree(Home::LOG));
            gone(own.remove(Home::TICKET).map(drop));
            let _ = fs::remove_dir(&self.home);
        }
    }
}

/// Puts a new room into a session's directory, and says under which name the old one was put aside. A container may still
/// have that one, and change it: so it is never made the next one's.
pub(crate) fn new_room(own: &Dir, mode: u32) -> io::Result<(Dir, Option<String>)> {
    let old = match own.kind(ROOM)? {
        Some(Kind::Directory) => own.put_aside(ROOM)?,
        Some(_) => {
            own.remove(ROOM)?;
            None
        }
        None => None,
    };
    Ok((make_in(own, ROOM, mode)?, old))
}

/// Takes away a room that was put aside. One that a container keeps filling stays there; it is in nobody's way.
pub(crate) fn discard(own: &Dir, old: Option<String>) {
    if let Some(old) = old
        && let Err(error) = own.remove_tree(&old)
    {
        tracing::warn!(%error, "the room of an earlier run is left");
    }
}

/// Makes links of ours from the session's directory into the room.
pub(crate) fn link_in(own: &Dir, names: &[&str]) -> io::Result<()> {
    for name in names {
        own.remove_tree(name)?;
        rustix::fs::symlinkat(Path::new(ROOM).join(name), own, *name)?;
    }
    Ok(())
}

/// Makes a directory with exactly this mode, or gives the one that is there this mode. No link is followed.
pub(crate) fn make_in(dir: &Dir, name: &str, mode: u32) -> io::Result<Dir> {
    let made = dir.make_dir(name, mode)?;
    rustix::fs::chmodat(&made, ".", Mode::from_raw_mode(mode), AtFlags::empty())?;
    Ok(made)
}

/// Makes a directory with exactly this mode, whatever the mask is. The path is ours, to its last name.
pub(crate) fn make(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn parsed(bytes: &[u8]) -> Option<ExitRecord> {
    serde_json::from_slice(bytes).ok()
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
    fn what_a_container_wrote_as_its_record_is_read_once_and_only_if_it_is_one() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        let rooms = Rooms::of(&home);
        rooms.furnish(1, false).unwrap();
        let (inside, own) = (rooms.room().join(Home::EXIT), home.join(Home::EXIT));
        let secret = dir.path().join("secret");
        fs::write(&secret, r#"{"code":7}"#).unwrap();
        let mkfifo = || {
            let made = std::process::Command::new("mkfifo").arg(&inside).status().unwrap();
            assert!(made.success());
        };
        let hostile: [&dyn Fn(); 5] = [
            &|| symlink(&secret, &inside).unwrap(),
            &|| mkfifo(),
            &|| fs::File::create(&inside).unwrap().set_len(6 << 30).unwrap(),
            &|| fs::create_dir(&inside).unwrap(),
            &|| fs::write(&inside, "nothing").unwrap(),
        ];
        for put in hostile {
            put();
            assert_eq!(rooms.record(1), None);
            assert!(own.is_symlink(), "nothing was taken over");
            Dir::open(&rooms.room()).unwrap().remove_tree(Home::EXIT).unwrap();
        }
        fs::write(&inside, r#"{"code":3}"#).unwrap();
        assert_eq!(rooms.record(1).unwrap().code, Some(3));
        // From now on it is ours, whatever the container makes of its own.
        fs::write(&inside, r#"{"code":4}"#).unwrap();
        assert_eq!(rooms.record(1).unwrap().code, Some(3));
        assert!(fs::symlink_metadata(&own).unwrap().is_file());
        // So it is when it was put aside before anybody had read it.
        rooms.furnish(2, false).unwrap();
        fs::rename(&own, home.join("exit.2.json")).unwrap();
        symlink(&secret, &inside).unwrap();
        rooms.furnish(3, false).unwrap();
        assert!(fs::symlink_metadata(home.join("exit.2.json")).is_err(), "it was none");
    }

    #[test]
    fn a_room_is_made_anew_whatever_the_last_container_still_does_with_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        let rooms = Rooms::of(&home);
        rooms.furnish(1, false).unwrap();
        let held = Dir::open(&rooms.room()).unwrap();
        let mut deep = held.make_dir("deep", 0o700).unwrap();
        for _ in 0..2_000 {
            deep = deep.make_dir("d", 0o700).unwrap();
        }
        drop(deep);
        rooms.furnish(2, false).unwrap();
        let _ = rustix::fs::symlinkat("/", &held, "birth");
        let now = Dir::open(&rooms.room()).unwrap();
        assert_ne!(now.identity().unwrap(), held.identity().unwrap());
        assert_eq!(now.names(10).unwrap(), [Home::LOG]);
        assert_eq!(Dir::open(&home).unwrap().names(10).unwrap().len(), 4, "sock, exit.json, log, room");
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
