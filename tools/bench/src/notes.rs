//! Receives timestamps from the commands inside sessions, over a datagram socket.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};

/// What a command inside a session said (`bench/command.c`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) pid: i32,
    pub(crate) id: i32,
    /// When it happened, by the clock of [`now`].
    pub(crate) when: i64,
    pub(crate) a: i64,
    pub(crate) b: i64,
    pub(crate) text: String,
}

/// The socket on which commands say what happened to them.
pub(crate) struct Notes {
    socket: UnixDatagram,
    path: PathBuf,
    early: VecDeque<Note>,
}

impl Notes {
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        let path = dir.join("notes");
        let socket = UnixDatagram::bind(&path).with_context(|| path.display().to_string())?;
        Ok(Self { socket, path, early: VecDeque::new() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next note of one command.
    pub(crate) fn from(&mut self, id: i32, within: Duration) -> Result<Note> {
        if let Some(at) = self.early.iter().position(|note| note.id == id) {
            return Ok(self.early.remove(at).expect("it was just found"));
        }
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("command {id} said nothing for {} s", within.as_secs());
            }
            self.socket.set_read_timeout(Some(left))?;
            let mut bytes = [0; 1024];
            match self.socket.recv(&mut bytes) {
                Ok(length) => {
                    let note = read(&bytes[..length]).context("a note that is too short")?;
                    if note.id == id {
                        return Ok(note);
                    }
                    self.early.push_back(note);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn read(bytes: &[u8]) -> Option<Note> {
    let half = |at: usize| Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let whole = |at: usize| Some(i64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(Note {
        pid: half(0)?,
        id: half(4)?,
        when: whole(8)?,
        a: whole(16)?,
        b: whole(24)?,
        text: String::from_utf8_lossy(&bytes[32..]).trim_end().to_owned(),
    })
}

/// Nanoseconds of the clock that all processes share.
pub(crate) fn now() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
