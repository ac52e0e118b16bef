//! A holder that is the first process of a container: no nursery forks it, and one session is all that it will have.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::nursery::ForkContext;
use super::start;
use crate::linux::cgroup::Hierarchies;
use crate::linux::{self, own, proc};

/// Runs `wharf-holder one SOCKET`: calls whoever waits at that socket, and is told by them what to start.
///
/// The asker listens and not we: it is heard at once when we are there, and where it is gone so are we.
pub(super) fn one(socket: &Path, shared: bool) -> io::Result<()> {
    own::keep_to_ourselves()?;
    own::close_inherited();
    let _ = rustix::process::setsid();
    // Where another user than the asker's writes the files, the asker reads them all the same: the directory
    // around them is its own alone.
    let umask = if shared {
        wharf_log::share_files();
        own::open_umask()
    } else {
        own::private_umask()
    };
    let context = ForkContext { boot: proc::boot()?, cgroups: Hierarchies::own(), umask, door: None };
    std::env::set_current_dir("/")?;
    start::serve(linux::connect(socket)?, &context)
}

/// How many seconds one that waits to be called does so.
const CALL_TIMEOUT_SECONDS: i64 = 60;
/// How long those that carry our last words may take.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs `wharf-holder await SOCKET`: listens there, since the asker has no file in common with us, and is told by the
/// first who calls what to start.
pub(super) fn awaited(socket: &Path) -> io::Result<()> {
    own::keep_to_ourselves()?;
    own::close_inherited();
    let _ = rustix::process::setsid();
    let umask = own::private_umask();
    let context = ForkContext { boot: proc::boot()?, cgroups: Hierarchies::own(), umask, door: None };
    std::env::set_current_dir("/")?;
    let Some(listener) = called(socket)? else { return Ok(()) };
    let (connection, _) = listener.accept()?;
    drop(listener);
    std::fs::remove_file(socket)?;
    let held = start::serve(connection, &context);
    linger();
    held
}

/// Listens until somebody calls. Where nobody does, whoever started us is gone.
fn called(socket: &Path) -> io::Result<Option<UnixListener>> {
    let listener = linux::bind(socket)?;
    let mut fds = [PollFd::new(&listener, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&Timespec { tv_sec: CALL_TIMEOUT_SECONDS, tv_nsec: 0 }))?;
    Ok((ready > 0).then_some(listener))
}

/// Everything in a container ends with its first process: those that carry our last words are given time to do so.
fn linger() {
    let (own, until) = (std::process::id() as i32, Instant::now() + LAST_WORDS_TIMEOUT);
    let others = || proc::pids().is_ok_and(|pids| pids.iter().any(|pid| *pid != own));
    while others() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
}
