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

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use wharf_model::{Container, Home, Limits, SessionId, Text};

use crate::rooms::{Rooms, gone, make};

/// The variable that has the path of a prompt.
const PROMPT_FILE: &str = "WHARF_PROMPT_FILE";

/// A shared container's directory.
#[derive(Debug, Clone)]
pub(crate) struct Berth {
    dir: PathBuf,
    mark: String,
}

impl Berth {
    /// The one of a mark, below an instance's directory.
    pub(crate) fn of(state: &Path, mark: &str) -> Self {
        Self { dir: state.join("berths").join(mark), mark: mark.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// The directory that the container sees.
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
        make(&self.rooms(), mode(shared))
    }

    /// Furnishes a session's room, still in its own directory. The log of earlier runs stays.
    pub(crate) fn furnish_room(home: &Path, run: u32, shared: bool) -> io::Result<()> {
        make(home, 0o700)?;
        let rooms = Rooms::of(home);
        rooms.keep_record(run.saturating_sub(1))?;
        let (room, log) = (rooms.room(), rooms.room().join(Home::LOG));
        clear(&room)?;
        make(&room, mode(shared))?;
        let own = rooms.log();
        if fs::symlink_metadata(&own).is_ok_and(|meta| meta.is_dir()) {
            fs::rename(&own, &log)?;
        }
        make(&log, mode(shared))?;
        if let Some(prompt) = rooms.prompt() {
            fs::copy(prompt, room.join(Home::PROMPT))?;
        }
        for name in [Home::LOG, Home::SOCKET, Home::EXIT] {
            gone(fs::remove_file(home.join(name)))?;
            symlink(room_link(name), home.join(name))?;
        }
        Ok(())
    }

    /// Brings a session's room into the container.
    pub(crate) fn enter(&self, home: &Path, id: &SessionId) -> io::Result<()> {
        let (room, inside) = (Rooms::of(home).room(), self.rooms().join(id.as_str()));
        fs::rename(&room, &inside)?;
        symlink(&inside, &room).or_else(|error| fs::rename(&inside, &room).and(Err(error)))
    }

    /// Takes a session's room back. One that is back already, or was never there, is no error.
    pub(crate) fn leave(&self, home: &Path, id: &SessionId) -> io::Result<()> {
        let (room, inside) = (Rooms::of(home).room(), self.rooms().join(id.as_str()));
        if !fs::symlink_metadata(&room).is_ok_and(|meta| meta.is_symlink()) {
            return Ok(());
        }
        match renameat_with(CWD, &inside, CWD, &room, RenameFlags::EXCHANGE) {
            // What stands there now is our own link.
            Ok(()) => fs::remove_file(&inside),
            Err(rustix::io::Errno::NOENT) => fs::remove_file(&room),
            // A file system that cannot: for a moment there is none.
            Err(rustix::io::Errno::INVAL) => {
                fs::remove_file(&room)?;
                fs::rename(&inside, &room)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// After a start that failed: the log of earlier runs is left, and nothing else.
    pub(crate) fn forget(&self, home: &Path, id: &SessionId, run: u32) {
        let left = self.leave(home, id);
        if let Err(error) = left.and_then(|()| clear(&Rooms::of(home).room())) {
            tracing::warn!(session = %id, %error, "a failed start left its room");
        }
        if run <= 1 {
            let _ = fs::remove_file(home.join(Home::LOG));
            Rooms::of(home).clear(run);
        }
    }

    /// The container is gone, and so is this.
    pub(crate) fn strike(&self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn mode(shared: bool) -> u32 {
    if shared { 0o777 } else { 0o700 }
}

fn room_link(name: &str) -> PathBuf {
    Path::new("room").join(name)
}

/// Empties a room but for its log. What is no directory goes.
fn clear(room: &Path) -> io::Result<()> {
    let Ok(meta) = fs::symlink_metadata(room) else { return Ok(()) };
    if !meta.is_dir() {
        return fs::remove_file(room);
    }
    for entry in fs::read_dir(room)? {
        let entry = entry?;
        let is_dir = entry.file_type()?.is_dir();
        if entry.file_name() == Home::LOG && is_dir {
            continue;
        }
        gone(if is_dir { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) })?;
    }
    Ok(())
}

/// What decides whether two sessions may share a container.
pub(crate) struct Make<'a> {
    /// Whose it is: an engine may be shared by many.
    pub(crate) install: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) image: &'a str,
    pub(crate) container: &'a Container,
    pub(crate) user: &'a str,
    pub(crate) limits: &'a Limits,
    pub(crate) holder: &'a Path,
}

impl Make<'_> {
    /// The mark of this make: another one for whatever makes a container another one. Commands, their variables and directories
    /// do not.
    pub(crate) fn mark(&self) -> String {
        let container = Container {
            image: String::new(),
            pull: wharf_model::Pull::default(),
            build: None,
            image_variables: false,
            image_dir: false,
            cap_drop: Vec::new(),
            ..self.container.clone()
        };
        let holder = self.holder.to_string_lossy();
        let all = serde_json::json!([
            self.install,
            self.endpoint,
            self.image,
            container,
            self.user,
            self.limits,
            holder
        ]);
        // FNV-1a of 128 bits: the same in every version, and nobody gains by two that are alike.
        let hash =
            all.to_string().bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
                (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
            });
        format!("{hash:032x}")
    }
}

/// Has a command find its prompt in its room.
pub(crate) fn aim(env: &mut [(Text, Text)], room: &str) {
    for (_, value) in env.iter_mut().filter(|(name, _)| name.as_bytes() == PROMPT_FILE.as_bytes()) {
        *value = format!("{room}/{}", Home::PROMPT).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_model::Millis;

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
        Berth::furnish_room(&home, 2, false).unwrap();
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 1);
    }

    #[test]
    fn a_mark_is_that_of_the_container_and_not_of_the_command() {
        let container = Container { reuse: true, ..Container::of("a") };
        let limits = Limits::default();
        let mark = |container: &Container, user: &str| {
            let (endpoint, image, holder) = ("unix:///x", "sha256:1", Path::new("/h"));
            Make { install: "i", endpoint, image, container, user, limits: &limits, holder }.mark()
        };
        let one = mark(&container, "0:0");
        assert_eq!(one.len(), 32);
        assert_eq!(mark(&Container { image_dir: true, image: "b".into(), ..container.clone() }, "0:0"), one);
        assert_ne!(mark(&Container { read_only: true, ..container.clone() }, "0:0"), one);
        assert_ne!(mark(&container, "1:1"), one);
    }
}
