//! What keeps a session alive when its holder is killed: duplicates of its descriptors, here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use wharf_holder::linux;
use wharf_holder::wire::{self, StartedReply};
use wharf_model::Ticket;

use super::start_frame::resume_frame;

/// The descriptors of one session.
#[derive(Debug)]
pub(super) struct KeptFds {
    pub(super) started: StartedReply,
    descriptors: Vec<OwnedFd>,
}

impl KeptFds {
    /// None where a holder sent none that a successor could go on with: then a killed holder is a lost session.
    pub(super) fn new(started: StartedReply, descriptors: Vec<OwnedFd>) -> Option<Self> {
        let whole = descriptors.len() == started.descriptors.len();
        (whole && started.descriptors.contains(&wire::Duplicate::Command))
            .then_some(Self { started, descriptors })
    }

    /// Lets go of the command's standard input, so that it ends.
    pub(super) fn close_input(&mut self) {
        if let Some(at) = self.started.descriptors.iter().position(|kind| *kind == wire::Duplicate::Stdin) {
            self.started.descriptors.remove(at);
            self.descriptors.remove(at);
        }
    }

    /// Whether the command is there still.
    pub(super) fn command_lives(&self) -> bool {
        let at = self.started.descriptors.iter().position(|kind| *kind == wire::Duplicate::Command);
        at.is_some_and(|at| !linux::proc::ends(&self.descriptors[at], Duration::ZERO))
    }

    /// What asks a fresh holder to take the session over. The answer comes as to a start.
    pub(super) fn resume(
        &self,
        ticket: &Ticket,
        descriptors: Option<u64>,
    ) -> io::Result<(Vec<u8>, Vec<BorrowedFd<'_>>)> {
        let frame = resume_frame(ticket, descriptors, self.started.clone())?;
        Ok((frame, self.descriptors.iter().map(AsFd::as_fd).collect()))
    }
}

/// The session's own channel, from our side, among what its holder sent; where it has one.
pub(super) fn channel(started: &StartedReply, descriptors: &[OwnedFd]) -> Option<OwnedFd> {
    let at = started.descriptors.iter().position(|kind| *kind == wire::Duplicate::ChannelOutside)?;
    descriptors.get(at)?.try_clone().ok()
}
