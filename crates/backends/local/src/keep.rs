//! What keeps a session alive when its holder is killed: duplicates of its descriptors, here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use wharf_boundary::SessionDir;
use wharf_holder::frame::{self, Kind};
use wharf_holder::linux;
use wharf_holder::wire::{self, Resume, Start, Started, Through};
use wharf_model::{Home, Millis, Scope, Text, Ticket};

/// The descriptors of one session.
#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) started: Started,
    descriptors: Vec<OwnedFd>,
}

impl Keep {
    /// None where a holder sent none that a successor could go on with: then a killed holder is a lost session.
    pub(crate) fn new(started: Started, descriptors: Vec<OwnedFd>) -> Option<Self> {
        let whole = descriptors.len() == started.descriptors.len();
        (whole && started.descriptors.contains(&wire::Duplicate::Command))
            .then_some(Self { started, descriptors })
    }

    /// Lets go of the command's standard input, so that it ends.
    pub(crate) fn close_input(&mut self) {
        if let Some(at) = self.started.descriptors.iter().position(|kind| *kind == wire::Duplicate::Stdin) {
            self.started.descriptors.remove(at);
            self.descriptors.remove(at);
        }
    }

    /// Whether the command is there still.
    pub(crate) fn command_lives(&self) -> bool {
        let at = self.started.descriptors.iter().position(|kind| *kind == wire::Duplicate::Command);
        at.is_some_and(|at| !linux::proc::ends(&self.descriptors[at], Duration::ZERO))
    }

    /// What asks a fresh holder to take the session over. The answer comes as to a start.
    pub(crate) fn resume(
        &self,
        ticket: &Ticket,
        descriptors: Option<u64>,
    ) -> io::Result<(Vec<u8>, Vec<BorrowedFd<'_>>)> {
        let resume = Resume { start: start_of(ticket, descriptors), started: self.started.clone() };
        let payload = wire::sections(&[&serde_json::to_vec(&resume)?, &given(ticket)?]);
        Ok((frame::encode(Kind::Resume, 1, &payload), self.descriptors.iter().map(AsFd::as_fd).collect()))
    }
}

/// The session's own channel, from our side, among what its holder sent; where it has one.
pub(crate) fn channel(started: &Started, descriptors: &[OwnedFd]) -> Option<OwnedFd> {
    let at = started.descriptors.iter().position(|kind| *kind == wire::Duplicate::ChannelOutside)?;
    descriptors.get(at)?.try_clone().ok()
}

/// The mask of a session whose caller had none to pass on.
const ORDINARY_UMASK: u32 = 0o022;

/// What a holder needs to know to start a session, as its ticket has it.
pub fn start_of(ticket: &Ticket, descriptors: Option<u64>) -> Start {
    let (spec, through) = (&ticket.spec, through(ticket));
    Start {
        home: ticket.dir.clone(),
        run: ticket.run,
        dir: spec.dir.clone(),
        tty: spec.tty,
        size: spec.size,
        log_size: spec.log_size.unwrap_or_default(),
        limits: spec.limits,
        motd: spec.motd.clone().filter(|_| ticket.run <= 1),
        // The daemon's own is for its files alone. A container has one already.
        umask: spec.umask.or_else(|| spec.container.is_none().then_some(ORDINARY_UMASK)),
        descriptors,
        token: ticket.token.clone(),
        guest: spec.adopt.is_some() && through.is_none(),
        through,
        enter: spec.enter.clone(),
        channel: spec.sandbox.is_some(),
        follow: None,
        place_home: false,
        expected: Vec::new(),
    }
}

/// What the backend has put down of what the command passes through, where it only does that.
fn through(ticket: &Ticket) -> Option<Through> {
    let mut private: serde_json::Value = serde_json::from_str(ticket.private.as_deref()?).ok()?;
    serde_json::from_value(private.get_mut("through")?.take()).ok()?
}

/// The ticket as a holder is given it: without the fields that the holder adds.
pub fn given(ticket: &Ticket) -> io::Result<Vec<u8>> {
    let blank = ticket.holder.is_none()
        && ticket.command.is_none()
        && ticket.scope.is_none()
        && ticket.started.is_zero();
    if blank {
        return Ok(serde_json::to_vec(ticket)?);
    }
    let (holder, command, scope, started) = (None, None, Scope::default(), Millis(0));
    Ok(serde_json::to_vec(&Ticket { holder, command, scope, started, ..ticket.clone() })?)
}

/// Reads a session's ticket.
pub fn read_ticket(dir: &Path) -> io::Result<Ticket> {
    let path = dir.join(Home::TICKET);
    let bytes =
        SessionDir::open(dir).and_then(|dir| dir.read_ticket()).map_err(|error| named(&path, &error))?;
    let mut ticket: Ticket = serde_json::from_slice(&bytes).map_err(|error| named(&path, &error.into()))?;
    // The directory is where it was found, wherever it stood when it was written.
    ticket.dir = Text::from(dir);
    Ok(ticket)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
