//! The way to a session's holder: no link on it, no wait without an end, and a proof of who answers.
//!
//! A session's socket stands where the session may write, so whoever listens there may be anybody. The ticket, which stands
//! where only we write, knows the holder since its birth; the kernel knows who listens. Before a byte is sent or believed the
//! two are compared.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use wharf_boundary::{Peer, SessionDir, take_descriptors};
use wharf_holder::linux::origin::HOLDER_NAME;
use wharf_holder::linux::proc;
use wharf_model::{Millis, ProcessIdentity};

/// What a ticket says of the holder.
#[derive(Debug, Default, Deserialize)]
struct Signed {
    #[serde(default)]
    holder: Option<ProcessIdentity>,
    #[serde(default)]
    started: Millis,
}

/// Connects to the holder of the session in a directory before a deadline. The stream blocks. An error of the kind
/// `PermissionDenied` says that somebody else is in the holder's place.
pub fn connect(session: &Path, within: Duration) -> io::Result<UnixStream> {
    let (dir, until) = (SessionDir::open(session)?, Instant::now() + within);
    let mut connected = dir.connect(within);
    let mut knock = Knock::default();
    while connected.as_ref().is_err_and(|error| knock.again(session, error)) && Instant::now() < until {
        std::thread::sleep(CONNECT_RETRY_INTERVAL);
        connected = dir.connect(until.saturating_duration_since(Instant::now()));
    }
    let stream = connected?;
    prove(&dir, &stream)?;
    take_descriptors(&stream, true);
    Ok(stream)
}

/// How long a holder that lives may take to listen again once it was told that nobody can reach it.
const LISTEN_AGAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// How long to wait before it is tried again meanwhile.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// Whether somebody whom nobody can reach is tried again: its socket may have been taken away from a holder that lives, and
/// it listens again when it hears of that.
#[derive(Debug, Default)]
pub(crate) struct Knock {
    knocked: bool,
    /// Until when it may listen again, where a holder lives.
    until: Option<Instant>,
}

impl Knock {
    /// Whether it may listen soon. The first time, it is told.
    pub(crate) fn again(&mut self, session: &Path, error: &io::Error) -> bool {
        if !is_nobody(error) {
            return false;
        }
        if !std::mem::replace(&mut self.knocked, true) {
            // A holder that is about to go does not come back: it is not waited for longer than one takes to listen.
            self.until = knock(session).then(|| Instant::now() + LISTEN_AGAIN_TIMEOUT);
        }
        self.until.is_some_and(|until| Instant::now() < until)
    }
}

/// Whether an error says that nobody listens where a holder should: the socket is gone, or is another's.
fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, InvalidData, NotFound};
    matches!(error.kind(), NotFound | ConnectionRefused | InvalidData)
        || matches!(error.raw_os_error(), Some(libc::ENOTSOCK | libc::ELOOP))
}

/// Asks the holder of a session, where it lives, to look at its files and to listen anew: somebody may have taken its socket
/// away, or put files of yesterday in their place. Whether there is such a holder.
fn knock(session: &Path) -> bool {
    let signed =
        || -> io::Result<Signed> { Ok(serde_json::from_slice(&SessionDir::open(session)?.read_ticket()?)?) };
    let Some(holder) = signed().ok().and_then(|signed| signed.holder) else { return false };
    let Ok(Some(pidfd)) = proc::open(&holder) else { return false };
    // The signal ends whatever is no holder.
    let name = std::fs::read(format!("/proc/{}/comm", holder.pid)).unwrap_or_default();
    name.trim_ascii_end() == HOLDER_NAME.to_bytes()
        && !proc::ends(&pidfd, Duration::ZERO)
        && proc::signal(&pidfd, libc::SIGHUP).is_ok()
}

/// The same without any wait: `WouldBlock` where the holder has no room for a connection now. The stream does not block.
pub fn connect_now(session: &Path) -> io::Result<UnixStream> {
    let dir = SessionDir::open(session)?;
    let stream = dir.connect_now()?;
    prove(&dir, &stream)?;
    // In a container even the holder may have been taken over; of that one we want nothing but bytes.
    take_descriptors(&stream, !dir.has_room());
    Ok(stream)
}

/// Whether the process at the other end of a connection is the holder that the session's ticket knows.
///
/// In the session's own directory, which only our own user writes, a ticket may lag behind: a holder that replaced another is
/// heard of before it has signed, and one that cannot sign on a full disk holds the session all the same. There it is enough
/// that who answers is our own user and has the number of the ticket's holder, or that that holder is gone: whoever could
/// forge that could write the ticket as well. A container's room is written by strangers: there only the very holder that was
/// known at birth will do.
fn prove(dir: &SessionDir, stream: &UnixStream) -> io::Result<()> {
    let peer = Peer::of(stream)?;
    let ticket = match dir.read_ticket() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        ticket => Some(ticket?),
    };
    let signed: Signed = match ticket {
        Some(ticket) => serde_json::from_slice(&ticket)?,
        None => Signed::default(),
    };
    let foreign = dir.has_room();
    match signed.holder {
        Some(holder) => {
            let proven = if foreign {
                is(peer, &holder, stream)?
            } else {
                peer.is_us() && (peer.pid == holder.pid || is_gone(&holder)?)
            };
            if proven {
                return Ok(());
            }
            Err(denied(format!(
                "process {} answers in the place of the session's holder, process {}",
                peer.pid, holder.pid
            )))
        }
        // It is being started: nobody who answers already is known yet.
        None if foreign && signed.started.is_zero() => Err(io::ErrorKind::NotFound.into()),
        None if peer.is_us() => Ok(()),
        None => Err(denied(format!("process {} of another user answers for the session's holder", peer.pid))),
    }
}

/// Whether a peer is exactly that process: its pid alone may be a stranger's by now.
fn is(peer: Peer, holder: &ProcessIdentity, stream: impl AsFd) -> io::Result<bool> {
    if peer.pid != holder.pid {
        return Ok(false);
    }
    // Held while it is looked at, so that its number stays its own; where the kernel can, as the very peer.
    let _held = Peer::process(stream);
    Ok(proc::open(holder)?.is_some())
}

/// Whether a process has ended, reaped or not.
fn is_gone(holder: &ProcessIdentity) -> io::Result<bool> {
    Ok(proc::open(holder)?.is_none_or(|pidfd| proc::ends(&pidfd, Duration::ZERO)))
}

fn denied(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(1);

    fn us() -> ProcessIdentity {
        proc::identity(std::process::id() as i32, &proc::boot().unwrap()).unwrap()
    }

    fn sign(home: &Path, holder: Option<&ProcessIdentity>, started: u64) {
        let ticket = serde_json::json!({ "holder": holder, "started": started, "id": "x" });
        fs::write(home.join("ticket.json"), ticket.to_string()).unwrap();
    }

    /// A process that has ended, and one that lives and is not us.
    fn others() -> (ProcessIdentity, ProcessIdentity) {
        let boot = proc::boot().unwrap();
        let living =
            proc::identity(rustix::process::getppid().unwrap().as_raw_nonzero().get(), &boot).unwrap();
        (ProcessIdentity { start: living.start + 1, ..living.clone() }, living)
    }

    #[test]
    fn only_the_holder_of_the_ticket_is_talked_to() {
        let home = tempfile::tempdir().unwrap();
        let _listener = UnixListener::bind(home.path().join("sock")).unwrap();
        let (gone, other) = others();
        sign(home.path(), Some(&us()), 1);
        connect(home.path(), TEST_TIMEOUT).unwrap();
        connect_now(home.path()).unwrap();
        sign(home.path(), Some(&other), 1);
        let error = connect(home.path(), TEST_TIMEOUT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        // It was replaced, and the one that replaced it has not signed yet.
        sign(home.path(), Some(&gone), 1);
        connect(home.path(), TEST_TIMEOUT).unwrap();
        // The door to another host is this process itself.
        sign(home.path(), None, 1);
        connect(home.path(), TEST_TIMEOUT).unwrap();
    }

    #[test]
    fn in_a_room_nobody_else_will_do() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("room")).unwrap();
        symlink("room/sock", home.path().join("sock")).unwrap();
        let _listener = UnixListener::bind(home.path().join("room/sock")).unwrap();
        let (gone, other) = others();
        sign(home.path(), Some(&us()), 1);
        connect(home.path(), TEST_TIMEOUT).unwrap();
        for holder in [gone, other, ProcessIdentity { start: 1, ..us() }] {
            sign(home.path(), Some(&holder), 1);
            let error = connect_now(home.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        }
        sign(home.path(), None, 0);
        assert_eq!(connect(home.path(), TEST_TIMEOUT).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn of_whoever_is_in_a_room_only_bytes_are_taken() {
        let home = tempfile::tempdir().unwrap();
        let (null, bytes) = (fs::File::open("/dev/null").unwrap(), [io::IoSlice::new(b"x")]);
        let send = |from: &UnixStream| wharf_holder::linux::send(from.as_fd(), &bytes, &[null.as_fd()]);
        sign(home.path(), Some(&us()), 1);
        let listener = UnixListener::bind(home.path().join("sock")).unwrap();
        let _own = connect_now(home.path()).unwrap();
        send(&listener.accept().unwrap().0).unwrap();
        fs::remove_file(home.path().join("sock")).unwrap();
        fs::create_dir(home.path().join("room")).unwrap();
        symlink("room/sock", home.path().join("sock")).unwrap();
        let listener = UnixListener::bind(home.path().join("room/sock")).unwrap();
        let _foreign = connect_now(home.path()).unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        take_descriptors(&other, false);
        if send(&one).is_ok() && std::env::var_os("CI").is_none() {
            eprintln!("left out: this kernel refuses no descriptors (Linux 6.16 does)");
            return;
        }
        let error = send(&listener.accept().unwrap().0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
