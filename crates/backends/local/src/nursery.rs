//! The process that forks holders, from this side.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Holders that wait for a session, so that a start need not wait for a fork.
const SPARES: usize = 2;

/// How long the nursery may take to take an order in.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where holders come from. It starts its process when first needed, and again when that died.
#[derive(Debug)]
pub(crate) struct Nursery {
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<(UnixStream, Child)>,
    spares: VecDeque<UnixStream>,
}

impl Nursery {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, state: Mutex::default() }
    }

    /// The holder's program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// A connection to a fresh holder. It may still be on its way into the world: what is written to it waits.
    pub(crate) fn holder(&self) -> io::Result<UnixStream> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.spares.pop_front() {
            Some(spare) => Ok(spare),
            None => self.order(&mut state),
        }
    }

    /// Makes up for holders that were given away.
    pub(crate) fn replenish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.spares.len() < SPARES {
            match self.order(&mut state) {
                Ok(spare) => state.spares.push_back(spare),
                // The next start will say what is wrong.
                Err(_) => return,
            }
        }
    }

    /// Forgets the spares: they are children of a nursery that may be gone.
    pub(crate) fn distrust(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).spares.clear();
    }

    fn order(&self, state: &mut State) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        for _ in 0..2 {
            let (orders, _) = match &mut state.process {
                Some(process) => process,
                none => none.insert(self.spawn()?),
            };
            match wharf_holder::linux::send(orders.as_fd(), &[IoSlice::new(&[1])], &[theirs.as_fd()]) {
                Ok(_) => {
                    ours.set_nonblocking(true)?;
                    return Ok(ours);
                }
                Err(_) => end(state.process.take()),
            }
        }
        Err(io::Error::other("the process that forks holders does not stay alive"))
    }

    fn spawn(&self) -> io::Result<(UnixStream, Child)> {
        let (ours, theirs) = UnixStream::pair()?;
        // One that is stopped must not stop us.
        ours.set_write_timeout(Some(PATIENCE))?;
        let child = Command::new(&self.program)
            .arg("nursery")
            .env_clear()
            // A holder is woken for every key that is typed, and has no use for what that would do each time.
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
            .current_dir("/")
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.program.display())))?;
        Ok((ours, child))
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        end(state.process.take());
    }
}

/// Lets a nursery go: it ends when its socket does, or else by force.
fn end(process: Option<(UnixStream, Child)>) {
    if let Some((socket, mut child)) = process {
        drop(socket);
        let _ = child.kill();
        let _ = child.wait();
    }
}
