//! The first word with the holder in a container: it calls us, and is told what to start.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};
use wharf_holder::linux::{self, proc};
use wharf_holder::wire::{Duplicate, Started};
use wharf_model::{Failure, ProcessIdentity};

/// The name of the socket that a holder calls.
pub(crate) const SOCKET: &str = "birth";

/// Somebody who waits for a holder's call.
pub(crate) struct Birth {
    listener: UnixListener,
}

impl Birth {
    /// Waits in the room that the holder will have.
    pub(crate) fn expect(room: &Path, shared: bool) -> Result<Self, Failure> {
        let path = room.join(SOCKET);
        let listen = || -> io::Result<UnixListener> {
            let listener = linux::bind(&path)?;
            listener.set_nonblocking(true)?;
            let mode = if shared { 0o777 } else { 0o700 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
            UnixListener::from_std(listener)
        };
        let listener = listen();
        let listener = listener
            .map_err(|error| Failure::system(format!("cannot listen at {}", path.display()), &error))?;
        Ok(Self { listener })
    }

    /// The holder's call, and who it is on this host. The caller sets the deadline.
    pub(crate) async fn call(&self) -> io::Result<(UnixStream, Option<ProcessIdentity>)> {
        let (stream, _) = self.listener.accept().await?;
        let pid = stream.peer_cred()?.pid().filter(|pid| *pid > 0);
        Ok((stream, pid.and_then(identity)))
    }
}

/// Who a command is on this host: what its holder knows is its number in the container.
pub(crate) fn command(started: &Started, descriptors: &[OwnedFd]) -> Option<ProcessIdentity> {
    let at = started.descriptors.iter().position(|kind| *kind == Duplicate::Command)?;
    let fd = descriptors.get(at)?.as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    identity(pid.trim().parse().ok().filter(|pid| *pid > 0)?)
}

fn identity(pid: i32) -> Option<ProcessIdentity> {
    proc::identity(pid, &proc::boot().ok()?).ok()
}
