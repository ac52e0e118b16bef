//! A container that several sessions share, as this host has it: its fingerprint, and the directory of their rooms.
//!
//! ```text
//! berths/<fingerprint>/rooms/<id>   a session's room while it is there: socket, log, exit record
//! sessions/<id>/room              ─▶ that, and the room itself once the session is over
//!              log                ─▶ room/log
//! ```
//! A container's mounts are fixed when it is made, so it mounts one directory, and rooms are moved into it. When a session
//! is over, its room moves back to the session's own directory in one step: whoever reads its log reads on.
//!
//! On disk and in engines a shared container is called `berth`, which is older than the name here.

pub(crate) mod configuration;
pub(crate) mod membership;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, RenameFlags};
use wharf_boundary::{Dir, Kind};
use wharf_model::{Home, SessionId, Text};

use crate::create_body::worktree;
use crate::session_dirs::{self, ROOM, SessionDirs, make_dir};

/// The variable with the path of the session's prompt.
const PROMPT_FILE: &str = "WHARF_PROMPT_FILE";

/// The directory of all shared containers, in the instance's own. The name on disk is older.
pub(crate) const DIR: &str = "berths";

/// A file that is in a shared container's directory from the moment that we remove the container.
const REMOVED: &str = "removed";

/// How often a room is moved into its place while somebody in the container keeps taking that place.
const MAX_MOVE_TRIES: u32 = 16;

/// A shared container's directory.
#[derive(Debug, Clone)]
pub(crate) struct SharedContainer {
    dir: PathBuf,
    fingerprint: String,
}

impl SharedContainer {
    /// The shared container with this fingerprint, below an instance's directory.
    pub(crate) fn of(state: &Path, fingerprint: &str) -> Self {
        Self { dir: state.join(DIR).join(fingerprint), fingerprint: fingerprint.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The directory that the container sees: its sessions may put anything there, in the place of any room.
    pub(crate) fn rooms(&self) -> PathBuf {
        self.dir.join("rooms")
    }

    /// The container's name. The engine refuses a second container of that name. The word `berth` in it is older.
    pub(crate) fn name(&self) -> String {
        format!("wharf-berth-{}", self.fingerprint)
    }

    /// Creates the directories. With `other_user`, another user than ours may write to the inner one; the outer one
    /// is ours alone.
    pub(crate) fn create_dirs(&self, other_user: bool) -> io::Result<()> {
        make_dir(&self.dir, 0o700)?;
        Dir::open(&self.dir)?.remove(REMOVED)?;
        make_dir(&self.rooms(), mode(other_user))
    }

    /// Notes that we are about to remove the container: the engine then reports it as killed, which is true of the
    /// container and of none of its sessions.
    pub(crate) fn note_removal(&self) -> io::Result<()> {
        match Dir::open(&self.dir).and_then(|dir| dir.make_file(REMOVED, 0o600)) {
            // Another task notes the same, or has removed the directory already.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                Ok(())
            }
            noted => noted.map(drop),
        }
    }

    /// Whether we removed the container, or are about to. Ask the engine first: the directory goes after the
    /// container.
    pub(crate) fn is_removed(&self) -> bool {
        match Dir::open(&self.dir) {
            Ok(dir) => dir.kind(REMOVED).is_ok_and(|kind| kind.is_some()),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Creates a session's room, still in its own directory, where no neighbour can reach it. The log of earlier runs
    /// moves along.
    pub(crate) fn create_room(home: &Path, run: u32, other_user: bool) -> io::Result<()> {
        make_dir(home, 0o700)?;
        SessionDirs::of(home).keep_exit_record(run.saturating_sub(1))?;
        let own = Dir::open(home)?;
        let room = replace_room(&own, mode(other_user))?;
        match own.read(Home::PROMPT, wharf_boundary::MAX_RECORD_LEN) {
            // The command may run as another user; the directory around the room keeps everybody else out.
            Ok(prompt) => {
                room.make_file(Home::PROMPT, if other_user { 0o644 } else { 0o600 })?.write_all(&prompt)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        session_dirs::link_into_room(&own, &[Home::LOG, Home::SOCKET, Home::EXIT])
    }

    /// Waits until no other task and no other daemon moves a room of this container, and keeps them waiting until the
    /// descriptor is dropped. No session can reach this directory, but what a session put there may take a while to remove.
    fn lock_rooms(&self) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(&self.dir, flags, Mode::empty()) {
            Ok(dir) => {
                rustix::io::retry_on_intr(|| rustix::fs::flock(&dir, FlockOperation::LockExclusive))?;
                Ok(Some(dir))
            }
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves a session's room into the container. Removes whatever a neighbour has put in its place.
    pub(crate) fn move_room_in(&self, home: &Path, id: &SessionId) -> io::Result<()> {
        let _alone = self.lock_rooms()?;
        let (own, rooms) = (Dir::open(home)?, Dir::open(&self.rooms())?);
        let mut tries = 0;
        loop {
            rooms.remove_tree(id.as_str())?;
            tries += 1;
            match own.rename(ROOM, &rooms, id.as_str()) {
                Ok(()) => break,
                Err(error) if tries == MAX_MOVE_TRIES || error.kind() == io::ErrorKind::NotFound => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        rustix::fs::symlinkat(self.rooms().join(id.as_str()), &own, ROOM).or_else(|error| {
            // A neighbour may have replaced the room by now; the next start replaces what came back.
            rooms.rename(id.as_str(), &own, ROOM)?;
            Err(error.into())
        })
    }

    /// Whether a session's room is in this container, by our own link to it.
    fn has_room_of(&self, own: &Dir, id: &SessionId) -> bool {
        let inside: PathBuf = [DIR, &self.fingerprint, "rooms", id.as_str()].iter().collect();
        rustix::fs::readlinkat(own, ROOM, Vec::new())
            .is_ok_and(|link| link.to_str().is_ok_and(|link| Path::new(link).ends_with(inside)))
    }

    /// Moves a session's room back to its own directory. A room that is back already, or was never there, is no
    /// error.
    pub(crate) fn move_room_out(&self, home: &Path, id: &SessionId) -> io::Result<()> {
        let own = match Dir::open(home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            own => own?,
        };
        let _alone = self.lock_rooms()?;
        // Trust our own link alone: another container may have a room of the same name.
        if !self.has_room_of(&own, id) {
            return Ok(());
        }
        let rooms = match Dir::open(&self.rooms()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return own.remove(ROOM).map(drop),
            rooms => rooms?,
        };
        match rustix::fs::renameat_with(&rooms, id.as_str(), &own, ROOM, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => return own.remove(ROOM).map(drop),
            // This file system cannot exchange: for a moment there is no room.
            Err(rustix::io::Errno::INVAL) => {
                own.remove(ROOM)?;
                rooms.rename(id.as_str(), &own, ROOM)?;
            }
            Err(error) => return Err(error.into()),
        }
        // A neighbour may have put anything at that name. Keep nothing but a directory.
        if own.kind(ROOM)? != Some(Kind::Directory) {
            own.remove(ROOM)?;
        }
        rooms.remove_tree(id.as_str())
    }

    /// Removes the room after a failed start, but keeps the log of earlier runs.
    pub(crate) fn undo_room(&self, home: &Path, id: &SessionId, run: u32) {
        let cleared = self.move_room_out(home, id).and_then(|()| {
            if run <= 1 {
                let own = Dir::open(home)?;
                own.remove_tree(Home::LOG)?;
                SessionDirs::of(home).remove_after_failed_start(run);
                return Ok(());
            }
            replace_room(&Dir::open(home)?, 0o700).map(drop)
        });
        if let Err(error) = cleared
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(session = %id, %error, "a failed start left its room");
        }
    }

    /// Removes the directories, after the container.
    pub(crate) fn remove_dirs(&self) {
        worktree::close_gaps(&self.dir, None);
        let all = self.dir.parent().map_or_else(|| Err(io::ErrorKind::NotFound.into()), Dir::open);
        if let Err(error) = all.and_then(|all| all.remove_tree(&self.fingerprint))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(fingerprint = self.fingerprint, %error, "the rooms of a shared container are left");
        }
    }
}

fn mode(other_user: bool) -> u32 {
    if other_user { 0o777 } else { 0o700 }
}

/// Replaces the room in a session's directory by a new one with the old one's log. Neighbours may still have the old
/// room open and change it at any moment, so it is never reused, and nothing but a directory is taken from it.
fn replace_room(own: &Dir, mode: u32) -> io::Result<Dir> {
    let (room, old) = session_dirs::new_room(own, mode)?;
    if own.kind(Home::LOG)? == Some(Kind::Directory) {
        own.rename(Home::LOG, &room, Home::LOG)?;
    } else if let Some(old) = &old {
        match own.dir(old)?.rename(Home::LOG, &room, Home::LOG) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if room.kind(Home::LOG)?.is_some_and(|kind| kind != Kind::Directory) {
        room.remove(Home::LOG)?;
    }
    session_dirs::make_dir_in(&room, Home::LOG, mode)?;
    session_dirs::remove_old_room(own, old);
    Ok(room)
}

/// Points the variable of a command's prompt at its room.
pub(crate) fn rewrite_prompt_path(env: &mut [(Text, Text)], room: &str) {
    for (_, value) in env.iter_mut().filter(|(name, _)| name.as_bytes() == PROMPT_FILE.as_bytes()) {
        *value = format!("{room}/{}", Home::PROMPT).into();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use wharf_model::Millis;

    /// Ends the other threads, also where the test fails.
    struct Ending<'a>(&'a AtomicBool);

    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_neighbour_never_leads_the_prompt_into_a_file_of_this_host() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let shared = SharedContainer::of(dir.path(), "m");
        shared.create_dirs(false).unwrap();
        make_dir(&home, 0o700).unwrap();
        fs::write(home.join(Home::PROMPT), "the prompt").unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = Ending(&stop);
            for run in 1..=500 {
                shared.move_room_out(&home, &id).unwrap();
                SharedContainer::create_room(&home, run, false).unwrap();
                shared.move_room_in(&home, &id).unwrap();
                // A neighbour keeps the room that it sees now, wherever that goes, and puts links there all the time.
                let (kept, stop, precious) =
                    (Dir::open(&shared.rooms().join(id.as_str())).unwrap(), &stop, &precious);
                if run % 125 == 1 {
                    scope.spawn(move || {
                        while !stop.load(Ordering::Relaxed) {
                            let _ = rustix::fs::symlinkat(precious, &kept, Home::PROMPT);
                            let _ = rustix::fs::symlinkat(precious, &kept, Home::LOG);
                        }
                    });
                }
                let room = wharf_boundary::SessionDir::open(&home).unwrap().room().unwrap();
                assert_eq!(room.read(Home::PROMPT, 100).unwrap(), b"the prompt");
            }
        });
        assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
    }

    #[test]
    fn a_container_cannot_take_the_room_of_a_session_in_another() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let (theirs, evil) =
            (SharedContainer::of(dir.path(), "theirs"), SharedContainer::of(dir.path(), "evil"));
        for shared in [&theirs, &evil] {
            shared.create_dirs(false).unwrap();
        }
        SharedContainer::create_room(&home, 1, false).unwrap();
        theirs.move_room_in(&home, &id).unwrap();
        fs::write(theirs.rooms().join(id.as_str()).join("log/x"), "x").unwrap();
        fs::create_dir_all(evil.rooms().join(id.as_str()).join("log")).unwrap();
        evil.move_room_out(&home, &id).unwrap();
        assert!(home.join("log/x").exists(), "it is still in its own");
        // And whatever stands in the way of one who enters goes.
        theirs.move_room_out(&home, &id).unwrap();
        SharedContainer::create_room(&home, 2, false).unwrap();
        symlink("/", theirs.rooms().join(id.as_str())).unwrap();
        theirs.move_room_in(&home, &id).unwrap();
        assert!(home.join("log/x").exists());
    }

    #[test]
    fn a_room_goes_and_comes_back_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let shared = SharedContainer::of(dir.path(), "m");
        shared.create_dirs(false).unwrap();
        for run in 1..=3 {
            SharedContainer::create_room(&home, run, false).unwrap();
            shared.move_room_in(&home, &id).unwrap();
            let inside = shared.rooms().join(id.as_str());
            fs::write(inside.join(format!("log/{run}")), "x").unwrap();
            fs::write(inside.join(Home::EXIT), run.to_string()).unwrap();
            assert!(home.join("log").join(run.to_string()).exists());
            shared.move_room_out(&home, &id).unwrap();
            shared.move_room_out(&home, &id).unwrap();
            assert!(!inside.exists() && fs::symlink_metadata(&inside).is_err());
            assert_eq!(fs::read_to_string(home.join(Home::EXIT)).unwrap(), run.to_string());
            assert_eq!(fs::read_dir(home.join(Home::LOG)).unwrap().count(), run as usize);
        }
        SharedContainer::create_room(&home, 4, false).unwrap();
        assert!(!home.join(Home::EXIT).exists());
        shared.move_room_in(&home, &id).unwrap();
        shared.undo_room(&home, &id, 4);
        assert_eq!(fs::read_dir(home.join(Home::LOG)).unwrap().count(), 3, "earlier runs are kept");
        shared.remove_dirs();
        assert!(!shared.dir().exists());
    }

    #[test]
    fn a_room_that_two_take_back_at_once_comes_back_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let shared = SharedContainer::of(dir.path(), "m");
        shared.create_dirs(false).unwrap();
        for run in 1..=300 {
            SharedContainer::create_room(&home, run, false).unwrap();
            shared.move_room_in(&home, &id).unwrap();
            fs::write(shared.rooms().join(id.as_str()).join("log/x"), run.to_string()).unwrap();
            let start = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        start.wait();
                        shared.move_room_out(&home, &id).unwrap();
                    });
                }
            });
            assert_eq!(fs::read_to_string(home.join(ROOM).join("log/x")).unwrap(), run.to_string());
        }
    }

    #[test]
    fn a_removal_is_known_from_before_it_until_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let shared = SharedContainer::of(dir.path(), "m");
        assert!(shared.is_removed(), "there is none");
        shared.create_dirs(false).unwrap();
        assert!(!shared.is_removed());
        for _ in 0..2 {
            shared.note_removal().unwrap();
            assert!(shared.is_removed());
        }
        shared.create_dirs(false).unwrap();
        assert!(!shared.is_removed(), "another one is started in its place");
        shared.note_removal().unwrap();
        shared.remove_dirs();
        assert!(shared.is_removed());
        shared.note_removal().unwrap();
        assert!(!shared.dir().exists());
    }

    #[test]
    fn a_first_start_that_failed_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let shared = SharedContainer::of(dir.path(), "m");
        shared.create_dirs(true).unwrap();
        SharedContainer::create_room(&home, 1, true).unwrap();
        shared.move_room_in(&home, &id).unwrap();
        shared.undo_room(&home, &id, 1);
        assert!(!home.exists());
        assert_eq!(fs::read_dir(shared.rooms()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_container_puts_in_the_place_of_a_room_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let shared = SharedContainer::of(dir.path(), "m");
        shared.create_dirs(false).unwrap();
        SharedContainer::create_room(&home, 1, false).unwrap();
        shared.move_room_in(&home, &id).unwrap();
        let precious = dir.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        let inside = shared.rooms().join(id.as_str());
        fs::remove_dir_all(&inside).unwrap();
        symlink(&precious, &inside).unwrap();
        shared.move_room_out(&home, &id).unwrap();
        // Of the shape of our own it would be believed from now on.
        assert!(fs::symlink_metadata(home.join(ROOM)).is_err(), "a link of the container's was taken back");
        SharedContainer::create_room(&home, 2, false).unwrap();
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 1);
    }
}
