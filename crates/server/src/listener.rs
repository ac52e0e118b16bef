//! Listens on the daemon's socket, and makes its file again where it was deleted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use wharf_api::{linux, private_directory};
use wharf_engine::Engine;
use wharf_model::{Code, Failure};

/// The daemon's socket. Its file may be deleted or replaced by anybody who cleans up; then it is made again.
pub(crate) struct Listener {
    path: PathBuf,
    engine: Engine,
    socket: UnixListener,
    file: Option<File>,
    look: Interval,
}

/// Which file: device and inode.
type File = (u64, u64);

/// How often the socket's file is looked at. It costs one system call.
const SOCKET_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait when no descriptor is left for a connection.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Another daemon listens in this one's place.
pub(crate) struct Replaced {
    pub(crate) pid: i32,
}

impl Listener {
    /// Listens. The caller holds the instance's lock: a socket that is in the place is stale.
    pub(crate) fn bind(path: &Path, engine: Engine) -> Result<Self, Failure> {
        let socket = bind(path)?;
        let mut look = tokio::time::interval_at(Instant::now() + SOCKET_POLL_INTERVAL, SOCKET_POLL_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { path: path.to_owned(), engine, socket, file: file(path), look })
    }

    /// The next connection.
    pub(crate) async fn accept(&mut self) -> Result<UnixStream, Replaced> {
        loop {
            tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, _)) => return Ok(stream),
                    Err(error) => {
                        tracing::warn!("cannot accept a connection: {error}");
                        // Out of descriptors, most often: those who ask next wait until one is free.
                        tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                    }
                },
                _ = self.look.tick() => self.look()?,
            }
        }
    }

    /// Makes the socket's file again where it is not ours any more.
    fn look(&mut self) -> Result<(), Replaced> {
        let now = file(&self.path);
        if now.is_some() && now == self.file {
            return Ok(());
        }
        if let Some(pid) = other_daemon(&self.path) {
            return Err(Replaced { pid });
        }
        // Most often the whole directory was: what new sessions need there is made again as well.
        match self.engine.reclaim().and_then(|()| bind(&self.path)) {
            Ok(socket) => {
                tracing::warn!("{} was deleted or replaced, and is made again", self.path.display());
                self.socket = socket;
                self.file = file(&self.path);
            }
            Err(failure) => tracing::warn!("{failure}"),
        }
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Before the process ends: who comes from now on shall start another daemon and not wait for this one.
        if self.file.is_some() && file(&self.path) == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn bind(path: &Path) -> Result<UnixListener, Failure> {
    if let Some(parent) = path.parent() {
        private_directory(parent)?;
    }
    linux::bind(path).and_then(UnixListener::from_std).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message =
                format!("cannot listen on {}: something that is no socket is in its place", path.display());
            Failure::new(Code::Unavailable, message).hint(format!("move {} away", path.display()))
        }
        _ => Failure::system(format_args!("cannot listen on {}", path.display()), &error),
    })
}

fn file(path: &Path) -> Option<File> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// The pid of another process that listens at our place: the lock was deleted with the directory, and a second
/// daemon took the instance over. Two must not take the socket from each other in turns.
fn other_daemon(path: &Path) -> Option<i32> {
    let peer = linux::peer(linux::connect(path).ok()?).ok()?;
    (peer.pid != std::process::id() as i32).then_some(peer.pid)
}
