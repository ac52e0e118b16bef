//! A container that several sessions share, as this host has it: its mark, and the directory of their rooms.
//!
//! ```text
//! berths/<mark>/rooms/<id>    a session's room while it is there: socket, log, exit record
//! sessions/<id>/room       ─▶ that, and the room itself once the session is over
//!              log         ─▶ room/log
//! ```
//! What a container sees is fixed when it is made, so rooms come to it and not it to the rooms. A session that is over has its
//! room in its own directory again, in one step: whoever reads its log reads on.

pub(crate) mod berths;
pub(crate) mod make;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::RenameFlags;
use wharf_boundary::{Dir, Kind};
use wharf_model::{Home, SessionId, Text};

use crate::rooms::{self, ROOM, Rooms, make};

/// The variable that has the path of a prompt.
const PROMPT_FILE: &str = "WHARF_PROMPT_FILE";

/// The directory of all shared containers, in the instance's own.
const BERTHS: &str = "berths";

/// What stands in a shared container's directory from the moment that we take the container away.
const REMOVED: &str = "removed";

/// How often a room is brought into its place while somebody in the container keeps taking that.
const MAX_ENTER_TRIES: u32 = 16;

/// A shared container's directory.
#[derive(Debug, Clone)]
pub(crate) struct Berth {
    dir: PathBuf,
    mark: String,
}

impl Berth {
    /// The one of a mark, below an instance's directory.
    pub(crate) fn of(state: &Path, mark: &str) -> Self {
        Self { dir: state.join(BERTHS).join(mark), mark: mark.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// The directory that the container sees: its sessions may put anything there, in the place of any room.
    pub(crate) fn rooms(&self) -> PathBuf {
        self.dir.join("rooms")
    }

    /// What the container is called: the engine sees to it that there are never two.
    pub(crate) fn name(&self) -> String {
        format!("wharf-berth-{}", self.mark)
    }

    /// Makes the directory. With `shared`, another user may write there; the directory around it is ours alone.
    pub(crate) fn furnish(&self, shared: bool) -> io::Result<()> {
        make(&self.dir, 0o700)?;
        Dir::open(&self.dir)?.remove(REMOVED)?;
        make(&self.rooms(), mode(shared))
    }

    /// Notes that we are about to take the container away: the engine then says that it was killed, which is true of the
    /// container and of none of its sessions.
    pub(crate) fn note_removal(&self) -> io::Result<()> {
        match Dir::open(&self.dir).and_then(|dir| dir.make_file(REMOVED, 0o600)) {
            // Another one notes the same, or is done with it.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                Ok(())
            }
            noted => noted.map(drop),
        }
    }

    /// Whether we took the container away, or are about to. Ask the engine first: the directory goes after the container.
    pub(crate) fn is_removed(&self) -> bool {
        match Dir::open(&self.dir) {
            Ok(dir) => dir.kind(REMOVED).is_ok_and(|kind| kind.is_some()),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Furnishes a session's room, still in its own directory, where no neighbour can reach it. The log of earlier runs
    /// comes along.
    pub(crate) fn furnish_room(home: &Path, run: u32, shared: bool) -> io::Result<()> {
        make(home, 0o700)?;
        Rooms::of(home).keep_record(run.saturating_sub(1))?;
        let own = Dir::open(home)?;
        let room = renewed(&own, mode(shared))?;
        match own.read(Home::PROMPT, wharf_boundary::MAX_RECORD_LEN) {
            // Whoever runs there may be another user, and nobody else comes this far.
            Ok(prompt) => {
                room.make_file(Home::PROMPT, if shared { 0o644 } else { 0o600 })?.write_all(&prompt)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        rooms::link_in(&own, &[Home::LOG, Home::SOCKET, Home::EXIT])
    }

    /// Brings a session's room into the container. Whatever a neighbour has put in its place goes.
    pub(crate) fn enter(&self, home: &Path, id: &SessionId) -> io::Result<()> {
        let (own, rooms) = (Dir::open(home)?, Dir::open(&self.rooms())?);
        let mut tries = 0;
        loop {
            rooms.remove_tree(id.as_str())?;
            tries += 1;
            match own.rename(ROOM, &rooms, id.as_str()) {
                Ok(()) => break,
                Err(error) if tries == MAX_ENTER_TRIES || error.kind() == io::ErrorKind::NotFound => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        rustix::fs::symlinkat(self.rooms().join(id.as_str()), &own, ROOM).or_else(|error| {
            // What comes back may be something else by now, which the next room takes the place of.
            rooms.rename(id.as_str(), &own, ROOM)?;
            Err(error.into())
        })
    }

    /// Whether a session's room is in this container, as our own link says.
    fn has(&self, own: &Dir, id: &SessionId) -> bool {
        let way: PathBuf = [BERTHS, &self.mark, "rooms", id.as_str()].iter().collect();
        rustix::fs::readlinkat(own, ROOM, Vec::new())
            .is_ok_and(|link| link.to_str().is_ok_and(|link| Path::new(link).ends_with(way)))
    }

    /// Takes a session's room back. One that is back already, or was never there, is no error.
    pub(crate) fn leave(&self, home: &Path, id: &SessionId) -> io::Result<()> {
        let own = match Dir::open(home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            own => own?,
        };
        // The link is ours, and says where the room is. What has the session's name in any other container is none of it.
        if !self.has(&own, id) {
            return Ok(());
        }
        let rooms = match Dir::open(&self.rooms()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return own.remove(ROOM).map(drop),
            rooms => rooms?,
        };
        match rustix::fs::renameat_with(&rooms, id.as_str(), &own, ROOM, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => return own.remove(ROOM).map(drop),
            // A file system that cannot: for a moment there is none.
            Err(rustix::io::Errno::INVAL) => {
                own.remove(ROOM)?;
                rooms.rename(id.as_str(), &own, ROOM)?;
            }
            Err(error) => return Err(error.into()),
        }
        // What came back is whatever had the name in there. Nothing but a directory is kept.
        if own.kind(ROOM)? != Some(Kind::Directory) {
            own.remove(ROOM)?;
        }
        rooms.remove_tree(id.as_str())
    }

    /// After a start that failed: the log of earlier runs is left, and nothing else.
    pub(crate) fn forget(&self, home: &Path, id: &SessionId, run: u32) {
        let cleared = self.leave(home, id).and_then(|()| {
            if run <= 1 {
                let own = Dir::open(home)?;
                own.remove_tree(Home::LOG)?;
                Rooms::of(home).clear(run);
                return Ok(());
            }
            renewed(&Dir::open(home)?, 0o700).map(drop)
        });
        if let Err(error) = cleared
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(session = %id, %error, "a failed start left its room");
        }
    }

    /// The container is gone, and so is this.
    pub(crate) fn strike(&self) {
        let berths = self.dir.parent().map_or_else(|| Err(io::ErrorKind::NotFound.into()), Dir::open);
        if let Err(error) = berths.and_then(|berths| berths.remove_tree(&self.mark))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(mark = self.mark, %error, "the rooms of a shared container are left");
        }
    }
}

fn mode(shared: bool) -> u32 {
    if shared { 0o777 } else { 0o700 }
}

/// A new room in a session's directory, with the log of the old one. Neighbours may still have the old one open, and put
/// anything there at any moment: so it is taken apart, and nothing but a directory is taken over from it.
fn renewed(own: &Dir, mode: u32) -> io::Result<Dir> {
    let (room, old) = rooms::new_room(own, mode)?;
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
    rooms::make_in(&room, Home::LOG, mode)?;
    rooms::discard(own, old);
    Ok(room)
}

/// Has a command find its prompt in its room.
pub(crate) fn aim(env: &mut [(Text, Text)], room: &str) {
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

    /// Lets others end, also where a test fails.
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
        let berth = Berth::of(dir.path(), "m");
        berth.furnish(false).unwrap();
        make(&home, 0o700).unwrap();
        fs::write(home.join(Home::PROMPT), "the prompt").unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = Ending(&stop);
            for run in 1..=500 {
                berth.leave(&home, &id).unwrap();
                Berth::furnish_room(&home, run, false).unwrap();
                berth.enter(&home, &id).unwrap();
                // A neighbour keeps the room that it sees now, wherever that goes, and puts links there all the time.
                let (kept, stop, precious) =
                    (Dir::open(&berth.rooms().join(id.as_str())).unwrap(), &stop, &precious);
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
        let (theirs, evil) = (Berth::of(dir.path(), "theirs"), Berth::of(dir.path(), "evil"));
        for berth in [&theirs, &evil] {
            berth.furnish(false).unwrap();
        }
        Berth::furnish_room(&home, 1, false).unwrap();
        theirs.enter(&home, &id).unwrap();
        fs::write(theirs.rooms().join(id.as_str()).join("log/x"), "x").unwrap();
        fs::create_dir_all(evil.rooms().join(id.as_str()).join("log")).unwrap();
        evil.leave(&home, &id).unwrap();
        assert!(home.join("log/x").exists(), "it is still in its own");
        // And whatever stands in the way of one who enters goes.
        theirs.leave(&home, &id).unwrap();
        Berth::furnish_room(&home, 2, false).unwrap();
        symlink("/", theirs.rooms().join(id.as_str())).unwrap();
        theirs.enter(&home, &id).unwrap();
        assert!(home.join("log/x").exists());
    }

    #[test]
    fn a_room_goes_and_comes_back_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let berth = Berth::of(dir.path(), "m");
        berth.furnish(false).unwrap();
        for run in 1..=3 {
            Berth::furnish_room(&home, run, false).unwrap();
            berth.enter(&home, &id).unwrap();
            let inside = berth.rooms().join(id.as_str());
            fs::write(inside.join(format!("log/{run}")), "x").unwrap();
            fs::write(inside.join(Home::EXIT), run.to_string()).unwrap();
            assert!(home.join("log").join(run.to_string()).exists());
            berth.leave(&home, &id).unwrap();
            berth.leave(&home, &id).unwrap();
            assert!(!inside.exists() && fs::symlink_metadata(&inside).is_err());
            assert_eq!(fs::read_to_string(home.join(Home::EXIT)).unwrap(), run.to_string());
            assert_eq!(fs::read_dir(home.join(Home::LOG)).unwrap().count(), run as usize);
        }
        Berth::furnish_room(&home, 4, false).unwrap();
        assert!(!home.join(Home::EXIT).exists());
        berth.enter(&home, &id).unwrap();
        berth.forget(&home, &id, 4);
        assert_eq!(fs::read_dir(home.join(Home::LOG)).unwrap().count(), 3, "earlier runs are kept");
        berth.strike();
        assert!(!berth.dir().exists());
    }

    #[test]
    fn a_removal_is_known_from_before_it_until_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let berth = Berth::of(dir.path(), "m");
        assert!(berth.is_removed(), "there is none");
        berth.furnish(false).unwrap();
        assert!(!berth.is_removed());
        for _ in 0..2 {
            berth.note_removal().unwrap();
            assert!(berth.is_removed());
        }
        berth.furnish(false).unwrap();
        assert!(!berth.is_removed(), "another one is started in its place");
        berth.note_removal().unwrap();
        berth.strike();
        assert!(berth.is_removed());
        berth.note_removal().unwrap();
        assert!(!berth.dir().exists());
    }

    #[test]
    fn a_first_start_that_failed_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let berth = Berth::of(dir.path(), "m");
        berth.furnish(true).unwrap();
        Berth::furnish_room(&home, 1, true).unwrap();
        berth.enter(&home, &id).unwrap();
        berth.forget(&home, &id, 1);
        assert!(!home.exists());
        assert_eq!(fs::read_dir(berth.rooms()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_container_puts_in_the_place_of_a_room_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (id, home) = (SessionId::new(Millis(1), 7), dir.path().join("sessions/s"));
        let berth = Berth::of(dir.path(), "m");
        berth.furnish(false).unwrap();
        Berth::furnish_room(&home, 1, false).unwrap();
        berth.enter(&home, &id).unwrap();
        let precious = dir.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        let inside = berth.rooms().join(id.as_str());
        fs::remove_dir_all(&inside).unwrap();
        symlink(&precious, &inside).unwrap();
        berth.leave(&home, &id).unwrap();
        // Of the shape of our own it would be believed from now on.
        assert!(fs::symlink_metadata(home.join(ROOM)).is_err(), "a link of the container's was taken back");
        Berth::furnish_room(&home, 2, false).unwrap();
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 1);
    }
}
