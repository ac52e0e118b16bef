//! The first frame that a fresh holder gets: what to start, and the ticket that it shall keep.

use std::io;

use wharf_backend::Result;
use wharf_holder::frame::{self, Kind};
use wharf_holder::wire::{self, Resume, Start, StartedReply, Through};
use wharf_model::{Code, Failure, Millis, Scope, Text, Ticket};

/// The mask of a session whose caller had none to pass on.
const ORDINARY_UMASK: u32 = 0o022;

/// The frame: what to start, the ticket that the holder shall keep, the command and its variables.
pub fn start_frame(start: &Start, given: &[u8], argv: &[Text], env: &[(Text, Text)]) -> Result<Vec<u8>> {
    let invalid = |error: io::Error| Failure::new(Code::Invalid, error.to_string());
    let argv = wire::strings(argv.iter().map(Text::as_bytes)).map_err(invalid)?;
    let env = wire::variables(env).map_err(invalid)?;
    let control = serde_json::to_vec(start).map_err(|error| invalid(error.into()))?;
    let payload = wire::sections(&[&control, given, &argv, &env]);
    if payload.len() > frame::MAX_PAYLOAD_LEN {
        return Err(Failure::new(Code::TooLong, "the arguments and variables are more than 16 MiB"));
    }
    Ok(frame::encode(Kind::Start, 1, &payload))
}

/// The frame that asks a fresh holder to take a session over which was started so: its descriptors go with it.
pub fn resume_frame(ticket: &Ticket, descriptors: Option<u64>, started: StartedReply) -> io::Result<Vec<u8>> {
    let resume = Resume { start: start_of(ticket, descriptors), started };
    let payload = wire::sections(&[&serde_json::to_vec(&resume)?, &given(ticket)?]);
    Ok(frame::encode(Kind::Resume, 1, &payload))
}

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
