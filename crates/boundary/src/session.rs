//! A session's directory, and the only ways from it to what the session can write.
//!
//! There are two kinds. In the one, the holder lives in the directory itself. In the other, it lives in a room that a
//! container sees, and the directory around the room is ours alone:
//!
//! ```text
//! sessions/<id>/ticket.json     always ours
//!               sock            a socket, or our link `room/sock`
//!               exit.json       a file, or our link `room/exit.json`
//!               log/            a directory, or our link `room/log`
//!               room/           a directory, or our link `<state>/berths/<mark>/rooms/<id>`
//! ```
//!
//! On a disk without room for a file, an exit record is a link that leads nowhere: its text is the record, in brief.
//!
//! A link that stands in the directory itself is read and believed only if its text is one of these. What is below the room
//! is the session's, and no link there is ever followed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::dir::{Dir, Kind};
use crate::file::MAX_RECORD_LEN;
use crate::platform::NAME_ONLY;

const SOCKET: &str = "sock";
const EXIT: &str = "exit.json";
const LOG: &str = "log";
const TICKET: &str = "ticket.json";
const ROOM: &str = "room";

/// The largest exit record: a real one has some hundred bytes.
pub const MAX_EXIT_LEN: u64 = 64 << 10;

/// A session's directory, held.
#[derive(Debug)]
pub struct SessionDir {
    dir: Dir,
}

impl SessionDir {
    /// Opens the directory of a session by its path, which is ours up to and including its name.
    pub fn open(home: &Path) -> io::Result<Self> {
        Ok(Self { dir: Dir::open(home)? })
    }

    /// The directory itself: ours alone where the session has a room.
    pub fn own(&self) -> &Dir {
        &self.dir
    }

    /// The directory in which the holder lives: the room, or the directory itself.
    pub fn room(&self) -> io::Result<Dir> {
        match self.room_or_none()? {
            Some(room) => Ok(room),
            None => self.dir.try_clone(),
        }
    }

    /// Whether the session has a room: then what it can write is there, and the directory itself is ours alone.
    pub fn has_room(&self) -> bool {
        !matches!(self.dir.kind(ROOM), Ok(None))
    }

    /// The log.
    pub fn log(&self) -> io::Result<Dir> {
        self.log_named(OsStr::new(LOG))
    }

    /// As `log`, by the name that it has.
    pub(crate) fn log_named(&self, name: &OsStr) -> io::Result<Dir> {
        match self.dir.dir(name) {
            // So says the kernel of a link that it shall not follow.
            Err(error) if is_no_directory(&error) => self.followed(name, LOG, |room| room.dir(LOG)),
            opened => opened,
        }
    }

    /// Connects to the holder, or fails at once: see [`Dir::connect_now`].
    pub fn connect_now(&self) -> io::Result<UnixStream> {
        self.at_socket(|dir| dir.connect_now(SOCKET))
    }

    /// Connects to the holder before a deadline: see [`Dir::connect`].
    pub fn connect(&self, within: Duration) -> io::Result<UnixStream> {
        self.at_socket(|dir| dir.connect(SOCKET, within))
    }

    /// Whether there is something in the holder's socket's place that can be connected to.
    pub fn has_socket(&self) -> bool {
        matches!(self.at_socket(|dir| dir.kind(SOCKET)), Ok(Some(Kind::Socket)))
    }

    /// The exit record; none if there is none yet.
    pub fn read_exit(&self) -> io::Result<Option<Vec<u8>>> {
        self.read_exit_named(EXIT)
    }

    /// The exit record of an earlier run, which a restart has put aside.
    pub fn read_exit_of(&self, run: u32) -> io::Result<Option<Vec<u8>>> {
        self.read_exit_named(&format!("exit.{run}.json"))
    }

    /// Writes the exit record into the directory itself. On a disk without room for it, its brief form stands there as the
    /// text of a link.
    pub fn write_exit(&self, json: &[u8], brief: &str) -> io::Result<()> {
        self.dir.replace(EXIT, json, 0o600).or_else(|error| {
            if !is_full(&error) {
                return Err(error);
            }
            self.write_exit_in_brief(brief)
        })
    }

    /// The second half of `write_exit`, where no file could be written.
    pub fn write_exit_in_brief(&self, brief: &str) -> io::Result<()> {
        let new = format!(".{EXIT}.brief");
        self.dir.remove(&new)?;
        rustix::fs::symlinkat(brief, &self.dir, &*new)?;
        self.dir.rename(&new, &self.dir, EXIT)
    }

    fn read_exit_named(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let read = match self.dir.kind(name)? {
            None => return Ok(None),
            Some(Kind::Link) => match brief(&self.dir, name)? {
                Some(record) => Ok(record),
                None => self.followed(OsStr::new(name), EXIT, |room| match brief(room, EXIT)? {
                    Some(record) => Ok(record),
                    None => room.read(EXIT, MAX_EXIT_LEN),
                }),
            },
            Some(_) => self.dir.read(name, MAX_EXIT_LEN),
        };
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Whether the holder has written an exit record, whatever stands in it. Something else in its place is none.
    pub fn has_exit(&self) -> bool {
        let written = |dir: &Dir| match dir.kind(EXIT)? {
            Some(Kind::Link) => Ok(brief(dir, EXIT)?.is_some()),
            kind => Ok(kind == Some(Kind::File)),
        };
        match self.dir.kind(EXIT) {
            Ok(Some(Kind::Link)) if !matches!(brief(&self.dir, EXIT), Ok(Some(_))) => {
                self.followed(OsStr::new(EXIT), EXIT, written).unwrap_or(false)
            }
            Ok(_) => written(&self.dir).unwrap_or(false),
            Err(_) => false,
        }
    }

    /// The ticket, which is always in the directory itself.
    pub fn read_ticket(&self) -> io::Result<Vec<u8>> {
        self.dir.read(TICKET, MAX_RECORD_LEN)
    }

    fn at_socket<T>(&self, act: impl FnOnce(&Dir) -> io::Result<T>) -> io::Result<T> {
        match self.dir.kind(SOCKET)? {
            Some(Kind::Link) => self.followed(OsStr::new(SOCKET), SOCKET, act),
            _ => act(&self.dir),
        }
    }

    /// Acts on the room, where our link to something in it says so.
    fn followed<T>(
        &self,
        name: &OsStr,
        wanted: &str,
        act: impl FnOnce(&Dir) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.link(name)? != Path::new(ROOM).join(wanted) {
            return Err(not_ours(name));
        }
        let room = self.room_or_none()?.ok_or(io::ErrorKind::NotFound)?;
        act(&room)
    }

    fn room_or_none(&self) -> io::Result<Option<Dir>> {
        match self.dir.dir(ROOM) {
            Ok(room) => Ok(Some(room)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if is_no_directory(&error) => {
                let below = berth(&self.link(OsStr::new(ROOM))?).ok_or_else(|| not_ours(OsStr::new(ROOM)))?;
                // The state's directory is where ours is, whatever it was called when the link was made. The way up is
                // ours; the way down from there knows no link.
                let flags = NAME_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let state = Dir::from_fd(rustix::fs::openat(&self.dir, "../..", flags, Mode::empty())?)?;
                state.dir(below).map(Some)
            }
            Err(error) => Err(error),
        }
    }

    fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        match rustix::fs::readlinkat(&self.dir, name, Vec::new()) {
            Ok(text) => Ok(PathBuf::from(OsStr::from_bytes(text.as_bytes()))),
            // No link after all.
            Err(Errno::INVAL) => Err(not_ours(name)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Opens a log by its path, which is that of a session's directory and the log's name in it. What the session can write is
/// reached as [`SessionDir`] says.
pub fn open_log(path: &Path) -> io::Result<Dir> {
    match (path.parent(), path.file_name()) {
        (Some(home), Some(name)) => {
            let home = if home.as_os_str().is_empty() { Path::new(".") } else { home };
            SessionDir::open(home)?.log_named(name)
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The way from the state's directory to a room that stands with a shared container's others: the last four names of a link
/// that we made, `berths/<mark>/rooms/<id>`.
fn berth(link: &Path) -> Option<PathBuf> {
    let plain = |part: &OsStr| {
        let bytes = part.as_bytes();
        !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
    };
    let mut parts = link.components().rev();
    let mut take = || match parts.next() {
        Some(Component::Normal(part)) => Some(part),
        _ => None,
    };
    let (id, rooms, mark, berths) = (take()?, take()?, take()?, take()?);
    let ours = link.is_absolute() && berths == "berths" && rooms == "rooms" && plain(mark) && plain(id);
    ours.then(|| [berths, mark, rooms, id].iter().collect())
}

/// The record that stands as the text of a link, where there is one: no path that we put anywhere begins like it.
fn brief(dir: &Dir, name: &str) -> io::Result<Option<Vec<u8>>> {
    match rustix::fs::readlinkat(dir, name, Vec::new()) {
        Ok(text) => Ok(Some(text.into_bytes()).filter(|text| text.starts_with(b"{"))),
        Err(Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether an error says that there is no room for a file.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::NOTDIR))
}

fn not_ours(name: &OsStr) -> io::Error {
    let what = format!("{} is not what Wharf puts there", name.to_string_lossy());
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(1);

    /// A state's directory with one session, furnished as a container's is.
    fn furnished() -> (tempfile::TempDir, PathBuf) {
        let state = tempfile::tempdir().unwrap();
        let home = state.path().join("sessions/s1");
        fs::create_dir_all(home.join("room/log")).unwrap();
        for name in ["sock", "exit.json", "log"] {
            symlink(Path::new("room").join(name), home.join(name)).unwrap();
        }
        (state, home)
    }

    #[test]
    fn a_record_in_brief_is_a_record() {
        let (_state, home) = furnished();
        let session = SessionDir::open(&home).unwrap();
        assert!(!session.has_exit());
        symlink("{\"code\":7}", home.join("room/exit.json")).unwrap();
        assert!(session.has_exit());
        assert_eq!(session.read_exit().unwrap().unwrap(), b"{\"code\":7}");
        session.write_exit_in_brief("{\"code\":8}").unwrap();
        assert!(session.has_exit());
        assert_eq!(session.read_exit().unwrap().unwrap(), b"{\"code\":8}");
        fs::rename(home.join("exit.json"), home.join("exit.1.json")).unwrap();
        assert_eq!(session.read_exit_of(1).unwrap().unwrap(), b"{\"code\":8}");
        session.write_exit(b"{}", "{\"code\":9}").unwrap();
        assert_eq!(session.read_exit().unwrap().unwrap(), b"{}");
    }

    #[test]
    fn a_session_in_its_own_directory_is_reached() {
        let state = tempfile::tempdir().unwrap();
        let home = state.path().join("sessions/s1");
        fs::create_dir_all(home.join("log")).unwrap();
        let session = SessionDir::open(&home).unwrap();
        assert!(!session.has_socket() && !session.has_exit());
        assert_eq!(session.read_exit().unwrap(), None);
        assert_eq!(session.connect(TEST_TIMEOUT).unwrap_err().kind(), io::ErrorKind::NotFound);
        let _listener = UnixListener::bind(home.join("sock")).unwrap();
        fs::write(home.join("exit.json"), "{}").unwrap();
        fs::write(home.join("exit.1.json"), "[]").unwrap();
        fs::write(home.join("ticket.json"), "t").unwrap();
        fs::write(home.join("log/a"), "bytes").unwrap();
        session.connect(TEST_TIMEOUT).unwrap();
        assert!(session.has_socket() && session.has_exit());
        assert_eq!(session.read_exit().unwrap().unwrap(), b"{}");
        assert_eq!(session.read_exit_of(1).unwrap().unwrap(), b"[]");
        assert_eq!(session.read_ticket().unwrap(), b"t");
        assert_eq!(open_log(&home.join("log")).unwrap().read("a", 10).unwrap(), b"bytes");
        assert_eq!(session.room().unwrap().identity().unwrap(), session.own().identity().unwrap());
    }

    #[test]
    fn a_room_is_reached_by_our_links_and_by_nobody_elses() {
        let (state, home) = furnished();
        let session = SessionDir::open(&home).unwrap();
        assert_eq!(session.read_exit().unwrap(), None);
        let _listener = UnixListener::bind(home.join("room/sock")).unwrap();
        fs::write(home.join("room/exit.json"), "{}").unwrap();
        fs::write(home.join("room/log/a"), "bytes").unwrap();
        session.connect(TEST_TIMEOUT).unwrap();
        assert_eq!(session.read_exit().unwrap().unwrap(), b"{}");
        assert_eq!(session.log().unwrap().read("a", 10).unwrap(), b"bytes");
        // As a restart does it, and the room's record is read by that name.
        fs::rename(home.join("exit.json"), home.join("exit.1.json")).unwrap();
        assert_eq!(session.read_exit_of(1).unwrap().unwrap(), b"{}");

        // What the container puts in the place of each leads nowhere.
        fs::create_dir(state.path().join("victim")).unwrap();
        let _victim = UnixListener::bind(state.path().join("victim/sock")).unwrap();
        fs::write(state.path().join("victim/exit.json"), "secret").unwrap();
        fs::remove_file(home.join("room/sock")).unwrap();
        fs::remove_file(home.join("room/exit.json")).unwrap();
        fs::remove_dir_all(home.join("room/log")).unwrap();
        symlink("../../../victim/sock", home.join("room/sock")).unwrap();
        symlink("../../../victim/exit.json", home.join("room/exit.json")).unwrap();
        symlink("../../../victim", home.join("room/log")).unwrap();
        assert!(crate::is_hostile(&session.connect(TEST_TIMEOUT).unwrap_err()));
        assert!(crate::is_hostile(&session.read_exit_of(1).unwrap_err()));
        session.log().unwrap_err();
        assert!(!session.has_socket() && !session.has_exit());
    }

    #[test]
    fn a_link_of_another_shape_is_not_believed() {
        let (state, home) = furnished();
        fs::create_dir_all(state.path().join("sessions/s2/log")).unwrap();
        let _victim = UnixListener::bind(state.path().join("sessions/s2/sock")).unwrap();
        for (name, text) in
            [("sock", "../s2/sock"), ("exit.json", "room/../x"), ("log", "../s2/log"), ("room", "../s2")]
        {
            let _ = fs::remove_file(home.join(name));
            let _ = fs::remove_dir_all(home.join(name));
            symlink(text, home.join(name)).unwrap();
        }
        let session = SessionDir::open(&home).unwrap();
        for error in [
            session.connect(TEST_TIMEOUT).unwrap_err(),
            session.read_exit().unwrap_err(),
            session.log().unwrap_err(),
            session.room().unwrap_err(),
        ] {
            assert!(crate::is_hostile(&error), "{error:?}");
        }
    }

    #[test]
    fn a_room_among_others_is_reached_and_no_link_among_them() {
        let (state, home) = furnished();
        let inside = state.path().join("berths/0f/rooms/s1");
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        fs::rename(home.join("room"), &inside).unwrap();
        symlink(&inside, home.join("room")).unwrap();
        fs::write(inside.join("log/a"), "bytes").unwrap();
        let session = SessionDir::open(&home).unwrap();
        let log = session.log().unwrap();
        assert_eq!(log.read("a", 10).unwrap(), b"bytes");
        // The container moves its own room away and a link into its place.
        fs::rename(&inside, state.path().join("berths/0f/rooms/s9")).unwrap();
        symlink("s9", &inside).unwrap();
        session.log().unwrap_err();
        assert_eq!(log.read("a", 10).unwrap(), b"bytes", "what is held stays");
        for odd in ["/x/berths/../rooms/s", "berths/0f/rooms/s1", "/berths/0f/other/s1", "/rooms/s1"] {
            assert_eq!(berth(Path::new(odd)), None, "{odd}");
        }
    }

    #[test]
    fn an_exit_record_of_six_gigabytes_is_not_read() {
        let state = tempfile::tempdir().unwrap();
        fs::File::create(state.path().join("exit.json")).unwrap().set_len(6 << 30).unwrap();
        let error = SessionDir::open(state.path()).unwrap().read_exit().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
