use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use wharf_holder::client::Client;
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
const PAUSE: Duration = Duration::from_millis(20);

/// Connects to a session's holder, or finds how it ended. A holder may be about to come, or to be replaced, so it is
/// tried for as long as `patience` says; none is for ever.
pub(crate) fn reach(
    session: &Path,
    name: &str,
    role: &str,
    patience: Option<Duration>,
) -> Result<Reached, Failure> {
    let begun = Instant::now();
    loop {
        // The socket first: an exit record may be that of the run before.
        let error = match Client::connect(session, role) {
            Ok(client) => return Ok(Reached::Live(Box::new(client))),
            Err(error) => error,
        };
        if let Some(exit) = place::exit(session)? {
            return Ok(Reached::Ended(exit));
        }
        if patience.is_some_and(|patience| begun.elapsed() >= patience) {
            return Err(unreachable(name, &error));
        }
        thread::sleep(PAUSE);
    }
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
