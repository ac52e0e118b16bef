//! The process that forks holders, from this side.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Holders that wait for a session, so that a start need not wait for a fork.
const SPARE_HOLDERS: usize = 2;

/// How long the nursery may take to take an order in.
const ORDER_TIMEOUT: Duration = Duration::from_secs(1);

/// Where holders come from. It starts its process when first needed, and again when that died.
#[derive(Debug)]
pub(super) struct Nursery {
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Process>,
    spares: VecDeque<UnixStream>,
}

#[derive(Debug)]
struct Process {
    orders: UnixStream,
    /// Where it is asked for what holders left that were killed. Holders have it too.
    door: OwnedFd,
    child: Child,
}

impl Nursery {
    pub(super) fn new(program: PathBuf) -> Self {
        Self { program, state: Mutex::default() }
    }

    /// The holder's program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// A connection to a fresh holder. It may still be on its way into the world: what is written to it waits.
    pub(super) fn holder(&self) -> io::Result<UnixStream> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.spares.pop_front() {
            Some(spare) => Ok(spare),
            None => self.order(&mut state),
        }
    }

    /// The way to ask for what holders of this nursery left that were killed, where there is one.
    pub(super) fn door(&self) -> Option<OwnedFd> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.process.as_ref()?.door.try_clone().ok()
    }

    /// Makes up for holders that were given away.
    pub(super) fn replenish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.spares.len() < SPARE_HOLDERS {
            match self.order(&mut state) {
                Ok(spare) => state.spares.push_back(spare),
                // The next start will say what is wrong.
                Err(_) => return,
            }
        }
    }

    /// Forgets the spares: they are children of a nursery that may be gone.
    pub(super) fn distrust(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).spares.clear();
    }

    fn order(&self, state: &mut State) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        for _ in 0..2 {
            let Process { orders, door, .. } = match &mut state.process {
                Some(process) => process,
                none => none.insert(self.spawn()?),
            };
            let passed = [door.as_fd(), theirs.as_fd()];
            match wharf_holder::linux::send(orders.as_fd(), &[IoSlice::new(&[1])], &passed) {
                Ok(_) => {
                    ours.set_nonblocking(true)?;
                    return Ok(ours);
                }
                Err(_) => end(state.process.take()),
            }
        }
        Err(io::Error::other("the process that forks holders does not stay alive"))
    }

    fn spawn(&self) -> io::Result<Process> {
        let (ours, theirs) = UnixStream::pair()?;
        let (door, desk) = UnixDatagram::pair()?;
        // One that is stopped must not stop us.
        ours.set_write_timeout(Some(ORDER_TIMEOUT))?;
        let child = Command::new(&self.program)
            .arg("nursery")
            // Holders keep our variables for one thing: a daemon that they start for a process of their session.
            // A holder is woken for every key that is typed, and has no use for what that would do each time.
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(desk)))
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.program.display())))?;
        Ok(Process { orders: ours, door: door.into(), child })
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        end(state.process.take());
    }
}

/// Lets a nursery go: it ends when its socket does, or else by force.
fn end(process: Option<Process>) {
    if let Some(Process { orders, mut child, .. }) = process {
        drop(orders);
        let _ = child.kill();
        let _ = child.wait();
    }
}
