//! The first process of a container that several sessions share: it keeps the container, and holds none of them.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};

use crate::linux::children;
use crate::linux::events;
use crate::linux::own;

/// Runs `wharf-holder keep`: reaps what nobody else does, until somebody asks it to go.
pub(super) fn run() -> io::Result<()> {
    // The sessions' orphans become ours, and their neighbours' holders know them by that.
    own::keep_to_ourselves()?;
    own::close_inherited();
    let _ = rustix::process::setsid();
    let signals = events::signals()?;
    std::env::set_current_dir("/")?;
    loop {
        match poll(&mut [PollFd::new(&signals, PollFlags::IN)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(signal) = events::next_signal(&signals) {
            if signal != libc::SIGCHLD {
                return Ok(());
            }
        }
        while children::wait_any().is_some() {}
    }
}
