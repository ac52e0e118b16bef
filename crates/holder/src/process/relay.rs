//! What joins a holder's socket to standard input and output: whoever has a stream to this place, and no file of it, is
//! then as good as beside us.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::linux;

/// How long a socket may take to be there for one who comes early.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a socket that is there may refuse connections.
const REFUSED_TIMEOUT: Duration = Duration::from_millis(100);
/// What is said on standard error once we run, or are connected where we are not early: an engine says that a program
/// was started before it is so.
const READY: &[u8] = b"ready\n";
/// How often a socket that is not there yet is looked for.
const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long the other side may go on when our input has ended: longer than whoever called waits for its last words.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);
/// How often one direction is moved before it is the other's turn: what is said without end must not keep a request back.
const MAX_CHUNKS_PER_TURN: usize = 32;
/// What is on its way in one direction at most.
const MAX_BUFFERED_LEN: usize = 128 << 10;

/// Connects to a holder. One who comes early waits for it.
pub(super) fn reach(socket: &Path, early: bool) -> io::Result<UnixStream> {
    let mut until = Instant::now() + SOCKET_TIMEOUT;
    loop {
        match linux::connect(socket) {
            Err(error) if early && Instant::now() < until => match error.kind() {
                io::ErrorKind::NotFound => std::thread::sleep(SOCKET_POLL_INTERVAL),
                // About to listen; or it has listened, and is about to go.
                io::ErrorKind::ConnectionRefused => {
                    until = until.min(Instant::now() + REFUSED_TIMEOUT);
                    std::thread::sleep(SOCKET_POLL_INTERVAL);
                }
                _ => return Err(error),
            },
            reached => return reached,
        }
    }
}

/// Runs `wharf-holder relay SOCKET [early]` until the holder has no more to say. The end of our input is passed on and
/// is not yet the end.
pub(super) fn relay(socket: &Path, early: bool) -> io::Result<()> {
    if early {
        rustix::io::write(rustix::stdio::stderr(), READY)?;
    }
    let holder = reach(socket, early)?;
    if !early {
        rustix::io::write(rustix::stdio::stderr(), READY)?;
    }
    holder.set_nonblocking(true)?;
    let (input, output) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    for end in [input, output] {
        rustix::io::ioctl_fionbio(end, true)?;
    }
    let (mut up, mut down, mut until) = (Way::default(), Way::default(), None);
    loop {
        if up.passes(input, holder.as_fd()) {
            // It has been told everything. It answers, and closes its side then.
            let _ = holder.shutdown(std::net::Shutdown::Write);
            until = Some(Instant::now() + DRAIN_TIMEOUT);
        }
        let left = until.map(|until: Instant| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            // An engine takes what we say when nobody hears it any more, and one who talks without end would keep both busy.
            return Ok(());
        }
        if down.passes(holder.as_fd(), output) {
            return Ok(());
        }
        if down.deaf && (up.told || up.deaf) {
            // Nobody hears what it says, and it was told everything: one who talks on and on is left to it.
            return Ok(());
        }
        let mut fds = Vec::with_capacity(4);
        if up.wants() {
            fds.push(PollFd::from_borrowed_fd(input, PollFlags::IN));
        }
        let mut ours = PollFlags::empty();
        ours.set(PollFlags::IN, down.wants());
        ours.set(PollFlags::OUT, up.has());
        if !ours.is_empty() {
            fds.push(PollFd::from_borrowed_fd(holder.as_fd(), ours));
        }
        if down.has() {
            fds.push(PollFd::from_borrowed_fd(output, PollFlags::OUT));
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Bytes on their way in one direction.
#[derive(Default)]
struct Way {
    bytes: Vec<u8>,
    sent: usize,
    /// Nothing more comes.
    over: bool,
    /// Nobody takes anything any more.
    deaf: bool,
    told: bool,
}

impl Way {
    fn has(&self) -> bool {
        self.sent < self.bytes.len()
    }

    fn wants(&self) -> bool {
        !self.over && !self.deaf && self.bytes.len() < MAX_BUFFERED_LEN
    }

    /// Moves what can be moved. True once, when the last byte went.
    fn passes(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> bool {
        let mut buffer = [0; 16 << 10];
        for _ in 0..MAX_CHUNKS_PER_TURN {
            let mut moved = false;
            while self.has() && !self.deaf {
                match rustix::io::write(to, &self.bytes[self.sent..]) {
                    Ok(n) => self.sent += n,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(_) => self.deaf = true,
                }
            }
            if !self.has() || self.deaf {
                self.bytes.clear();
                self.sent = 0;
            }
            if self.wants() {
                match rustix::io::read(from, &mut buffer) {
                    Ok(n @ 1..) => {
                        self.bytes.extend_from_slice(&buffer[..n]);
                        moved = true;
                    }
                    Err(Errno::INTR) => moved = true,
                    Err(Errno::AGAIN) => {}
                    Ok(_) | Err(_) => self.over = true,
                }
            }
            if !moved {
                break;
            }
        }
        let last = self.over && !self.has() && !self.told;
        self.told |= last;
        last
    }
}
