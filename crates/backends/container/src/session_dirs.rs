//! The two directories of a session that its container sees: the log, and the *room*, where its holder keeps its
//! socket and its exit record.
//!
//! The session's own directory stays out of a container's reach: its files decide what runs on this host when the
//! session is started again. Room and log belong to the container: the daemon reaches them through a [`SessionDir`]
//! alone, and never trusts, follows or waits for anything there.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use wharf_boundary::{Dir, Kind, SessionDir};
use wharf_model::{ExitRecord, Failure, Home, Ticket};

use crate::create_body::worktree;
use crate::remote::ProxyLock;

/// The room's name in the session's directory.
pub(crate) const ROOM: &str = "room";

/// The directory that a container sees instead of the instance's directory. The name on disk is older.
const COVER: &str = "veil";

/// A session's directory, with the two in it that its container sees.
#[derive(Debug, Clone)]
pub(crate) struct SessionDirs {
    home: PathBuf,
}

impl SessionDirs {
    /// The directories of the session in `home`.
    pub(crate) fn of(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// The session's directory itself.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The room, with the holder's socket and exit record. Give this path to the engine alone, which mounts it.
    pub(crate) fn room(&self) -> PathBuf {
        self.home.join(ROOM)
    }

    /// The session's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.home.join(Home::LOG)
    }

    /// The session's prompt; none where there is none.
    pub(crate) fn prompt(&self) -> Option<PathBuf> {
        Some(self.home.join(Home::PROMPT)).filter(|path| path.exists())
    }

    /// Creates a directory to mount over the instance's own. It is empty but for the mount point of the prompt. A
    /// tmpfs would do as well, but some engines copy what it covers into it.
    pub(crate) fn cover_dir(&self, state: &Path) -> Result<PathBuf, Failure> {
        let cover = self.home.join(COVER);
        let prompt = self.prompt().and_then(|prompt| Some(cover.join(prompt.strip_prefix(state).ok()?)));
        let create = || -> io::Result<()> {
            make_dir(&cover, 0o755)?;
            if let Some(prompt) = prompt {
                fs::create_dir_all(prompt.parent().unwrap_or(&cover))?;
                fs::write(prompt, b"")?;
            }
            Ok(())
        };
        create().map_err(|error| Failure::system(format!("cannot make {}", cover.display()), &error))?;
        Ok(cover)
    }

    /// Creates room and log for a run. With `other_user`, another user than ours may write there; the directory
    /// around them is ours alone. The room is always new: what an earlier run's container still has open is another
    /// directory.
    pub(crate) fn create(&self, run: u32, other_user: bool) -> Result<(), Failure> {
        let create = || -> io::Result<()> {
            make_dir(&self.home, 0o700)?;
            self.keep_exit_record(run.saturating_sub(1))?;
            let own = Dir::open(&self.home)?;
            let mode = if other_user { 0o777 } else { 0o700 };
            let (room, old) = new_room(&own, mode)?;
            if own.kind(Home::LOG)?.is_some_and(|kind| kind != Kind::Directory) {
                own.remove(Home::LOG)?;
            }
            make_dir_in(&own, Home::LOG, mode)?;
            // The mount point of the log: made here, so that the engine does not make it with more rights.
            make_dir_in(&room, Home::LOG, mode)?;
            link_into_room(&own, &[Home::SOCKET, Home::EXIT])?;
            remove_old_room(&own, old);
            Ok(())
        };
        create().map_err(|error| Failure::system(format!("cannot furnish {}", self.home.display()), &error))
    }

    /// Creates what a run on another host has on this side: the log alone.
    pub(crate) fn create_remote(&self) -> Result<(), Failure> {
        let create = || -> io::Result<()> {
            make_dir(&self.home, 0o700)?;
            let own = Dir::open(&self.home)?;
            make_dir_in(&own, Home::LOG, 0o700)?;
            for name in [Home::SOCKET, Home::EXIT] {
                own.remove(name)?;
            }
            Ok(())
        };
        create().map_err(|error| Failure::system(format!("cannot furnish {}", self.home.display()), &error))
    }

    /// Copies the exit record of an earlier run out of the room, which is about to be replaced.
    pub(crate) fn keep_exit_record(&self, run: u32) -> io::Result<()> {
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

    /// The exit record of a run, if it can be parsed. A record that a container wrote is read once, and becomes a
    /// file of ours: later changes in the room do not matter.
    pub(crate) fn exit_record(&self, run: u32) -> Option<ExitRecord> {
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

    /// Whether there is an exit record that can be parsed. With anything else in its place only the engine knows the
    /// end, so its container must stay.
    pub(crate) fn has_exit_record(&self) -> bool {
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

    /// Writes an exit record that no holder could write.
    pub(crate) fn write_exit(&self, record: &ExitRecord) {
        let json = serde_json::to_vec(record).map_err(io::Error::from);
        let written = json.and_then(|json| Dir::open(&self.home)?.replace(Home::EXIT, &json, 0o600));
        if let Err(error) = written {
            tracing::warn!(dir = %self.home.display(), %error, "the end of a session is not on disk");
        }
    }

    /// Removes the link to an exit record that nobody will ever write, so that nothing takes it for one.
    pub(crate) fn remove_exit_link(&self) {
        if let Ok(own) = Dir::open(&self.home)
            && own.kind(Home::EXIT).ok().flatten() == Some(Kind::Link)
        {
            let _ = own.remove(Home::EXIT);
        }
    }

    /// Removes what a failed start made, but keeps the log of earlier runs and what the starter put into the
    /// directory. It may take as long as a container made it: call it off the daemon's thread.
    pub(crate) fn remove_after_failed_start(&self, run: u32) {
        let Ok(own) = Dir::open(&self.home) else { return };
        let is = |name: &str, kind: Kind| own.kind(name).ok().flatten() == Some(kind);
        let gone = |result: io::Result<()>| {
            if let Err(error) = result {
                tracing::warn!(dir = %self.home.display(), %error, "a failed start left something");
            }
        };
        gone(own.remove_tree(ROOM));
        gone(own.remove_tree(COVER));
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

/// Makes a new room in a session's directory. Returns the name under which the old one was put aside: a container may
/// still have it open and change it, so it is never reused.
pub(crate) fn new_room(own: &Dir, mode: u32) -> io::Result<(Dir, Option<String>)> {
    let old = match own.kind(ROOM)? {
        Some(Kind::Directory) => own.put_aside(ROOM)?,
        Some(_) => {
            own.remove(ROOM)?;
            None
        }
        None => None,
    };
    Ok((make_dir_in(own, ROOM, mode)?, old))
}

/// Removes a room that was put aside. If a container keeps filling it, it stays, and is in nobody's way.
pub(crate) fn remove_old_room(own: &Dir, old: Option<String>) {
    if let Some(old) = old
        && let Err(error) = own.remove_tree(&old)
    {
        tracing::warn!(%error, "the room of an earlier run is left");
    }
}

/// Links names in the session's directory to the room.
pub(crate) fn link_into_room(own: &Dir, names: &[&str]) -> io::Result<()> {
    for name in names {
        own.remove_tree(name)?;
        rustix::fs::symlinkat(Path::new(ROOM).join(name), own, *name)?;
    }
    Ok(())
}

/// Makes a directory with exactly this mode, or sets the mode of the one that exists. No link is followed.
pub(crate) fn make_dir_in(dir: &Dir, name: &str, mode: u32) -> io::Result<Dir> {
    let made = dir.make_dir(name, mode)?;
    rustix::fs::chmodat(&made, ".", Mode::from_raw_mode(mode), AtFlags::empty())?;
    Ok(made)
}

/// Makes a directory with exactly this mode, whatever the mask is. The path is ours, to its last name.
pub(crate) fn make_dir(path: &Path, mode: u32) -> io::Result<()> {
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
        let dirs = SessionDirs::of(&home);
        dirs.create(1, false).unwrap();
        assert!(!home.join(Home::EXIT).exists());
        fs::write(dirs.room().join(Home::EXIT), "{}").unwrap();
        assert!(home.join(Home::EXIT).exists());
        // As a restart does it.
        fs::rename(home.join(Home::EXIT), home.join("exit.1.json")).unwrap();
        dirs.create(2, false).unwrap();
        assert_eq!(fs::read(home.join("exit.1.json")).unwrap(), b"{}");
        assert!(!home.join(Home::EXIT).exists());
    }

    #[test]
    fn what_a_container_wrote_as_its_record_is_read_once_and_only_if_it_is_one() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        let dirs = SessionDirs::of(&home);
        dirs.create(1, false).unwrap();
        let (inside, own) = (dirs.room().join(Home::EXIT), home.join(Home::EXIT));
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
            assert_eq!(dirs.exit_record(1), None);
            assert!(own.is_symlink(), "nothing was taken over");
            Dir::open(&dirs.room()).unwrap().remove_tree(Home::EXIT).unwrap();
        }
        fs::write(&inside, r#"{"code":3}"#).unwrap();
        assert_eq!(dirs.exit_record(1).unwrap().code, Some(3));
        // From now on it is ours, whatever the container makes of its own.
        fs::write(&inside, r#"{"code":4}"#).unwrap();
        assert_eq!(dirs.exit_record(1).unwrap().code, Some(3));
        assert!(fs::symlink_metadata(&own).unwrap().is_file());
        // So it is when it was put aside before anybody had read it.
        dirs.create(2, false).unwrap();
        fs::rename(&own, home.join("exit.2.json")).unwrap();
        symlink(&secret, &inside).unwrap();
        dirs.create(3, false).unwrap();
        assert!(fs::symlink_metadata(home.join("exit.2.json")).is_err(), "it was none");
    }

    #[test]
    fn a_room_is_made_anew_whatever_the_last_container_still_does_with_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        let dirs = SessionDirs::of(&home);
        dirs.create(1, false).unwrap();
        let held = Dir::open(&dirs.room()).unwrap();
        let mut deep = held.make_dir("deep", 0o700).unwrap();
        for _ in 0..2_000 {
            deep = deep.make_dir("d", 0o700).unwrap();
        }
        drop(deep);
        dirs.create(2, false).unwrap();
        let _ = rustix::fs::symlinkat("/", &held, "birth");
        let now = Dir::open(&dirs.room()).unwrap();
        assert_ne!(now.identity().unwrap(), held.identity().unwrap());
        assert_eq!(now.names(10).unwrap(), [Home::LOG]);
        assert_eq!(Dir::open(&home).unwrap().names(10).unwrap().len(), 4, "sock, exit.json, log, room");
    }

    #[test]
    fn a_failed_start_leaves_nothing_but_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        let dirs = SessionDirs::of(&home);
        dirs.create(1, true).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&home), mode(&dirs.room()), mode(&dirs.log())), (0o700, 0o777, 0o777));
        dirs.remove_after_failed_start(1);
        assert!(!home.exists());
        dirs.create(1, false).unwrap();
        fs::write(home.join(Home::PROMPT), "p").unwrap();
        dirs.remove_after_failed_start(1);
        let left: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [Home::PROMPT]);
    }
}
