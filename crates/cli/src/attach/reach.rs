//! Connects to a session's holder and retries until it answers, or finds the exit record.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use wharf_holder_client::client::{self, Client};
use wharf_model::{Code, ExitRecord, Failure};

use crate::place;

/// What there is of a session.
pub(crate) enum Reached {
    /// Its holder.
    Live(Box<Client>),
    /// How it ended.
    Ended(ExitRecord),
}

/// How long to wait between tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// How often somebody else may answer in the holder's place before that is told.
const MAX_STRANGERS: u32 = 10;

/// How often a holder may answer and say nothing of use.
const MAX_HANG_UPS: u32 = 10;

/// Connects to a session's holder, or finds how it ended. A holder may be about to come, or to be replaced, so it is
/// tried for as long as `patience` says; none is for ever.
pub(crate) fn reach(
    session: &Path,
    name: &str,
    role: &str,
    patience: Option<Duration>,
) -> Result<Reached, Failure> {
    let begun = Instant::now();
    let (mut strangers, mut hung_up) = (0, 0);
    loop {
        // The socket first: an exit record may be that of the run before.
        let error = match Client::connect(session, role) {
            Ok(client) => return Ok(Reached::Live(Box::new(client))),
            Err(error) => error,
        };
        if let Some(failure) = client::refusal(&error) {
            return Err(failure.clone());
        }
        if let Some(exit) = place::exit(session)? {
            return Ok(Reached::Ended(exit));
        }
        match error.kind() {
            // It may be about to be replaced, and the next one about to sign; but nobody waits for ever for that.
            io::ErrorKind::PermissionDenied => strangers += 1,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => hung_up += 1,
            _ => {}
        }
        if strangers > MAX_STRANGERS {
            return Err(stranger(name, &error));
        }
        if hung_up > MAX_HANG_UPS {
            return Err(unreachable(name, &error));
        }
        if patience.is_some_and(|patience| begun.elapsed() >= patience) {
            return Err(unreachable(name, &error));
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

fn stranger(name: &str, error: &io::Error) -> Failure {
    Failure::new(Code::Forbidden, format!("cannot reach the session {name:?}: {error}"))
        .hint("something in the session took the place of its holder's socket; nothing was sent to it")
}

fn unreachable(name: &str, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "it does not run yet, or its holder is gone".to_owned(),
        io::ErrorKind::ConnectionRefused => "its holder is gone".to_owned(),
        _ => error.to_string(),
    };
    Failure::new(Code::Unreachable, format!("cannot reach the session {name:?}: {why}"))
        .hint(format!("`wharf show {name}` says what became of it, `wharf logs {name}` shows its output"))
}
