//! Types into a session: straight to its holder where that can be reached, else through the daemon.

use std::path::Path;
use std::time::{Duration, Instant};

use wharf_holder::client::{Client, Event};
use wharf_model::{Code, Failure};

use crate::{call, place};

/// How long typing may take where nothing else is said.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// The most that goes in one piece, which no other input mixes with.
pub(crate) const PIECE: usize = 1 << 20;

/// One session to type into.
pub(crate) struct Keyboard {
    name: String,
    holder: Option<Client>,
}

impl Keyboard {
    /// Finds the session.
    pub(crate) fn of(name: &str) -> Result<Self, Failure> {
        let dir = place::session(&place::home()?, name)?;
        // What runs inside a session asks the daemon, which knows what it may do.
        let inside = std::env::var_os("WHARF_SESSION").is_some();
        let holder = if inside { None } else { holder(&dir) };
        Ok(Self { name: name.to_owned(), holder })
    }

    /// Types bytes, at most [`PIECE`] of them. Returns when all are in the terminal.
    pub(crate) fn type_in(&mut self, bytes: &[u8], within: Duration) -> Result<(), Failure> {
        let Some(client) = &mut self.holder else {
            let bytes = bytes.to_vec();
            return call::once(async |client| client.write(&self.name, bytes, within).await);
        };
        let seq = client.send_input(bytes, true).map_err(|_| gone(&self.name))?;
        answer(client, &self.name, seq, within).map(drop)
    }

    /// Sends a signal to the command.
    pub(crate) fn signal(&mut self, signal: i32) -> Result<(), Failure> {
        if let Some(client) = &mut self.holder {
            let seq = client.signal(signal, false).map_err(|_| gone(&self.name))?;
            return answer(client, &self.name, seq, WITHIN).map(drop);
        }
        let selector = wharf_api::Selector { names: vec![self.name.clone()], ..Default::default() };
        let request = wharf_api::ManyRequest { selector, signal, ..Default::default() };
        let outcomes = call::once(async |client| client.signal(&request).await)?;
        outcomes.into_iter().find_map(|outcome| outcome.failure).map_or(Ok(()), Err)
    }

    /// Ends the input of a session without a terminal.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        call::again(async |client| client.close_input(&self.name).await)
    }
}

fn holder(dir: &Path) -> Option<Client> {
    Client::connect(dir, "program").ok()
}

/// Waits for the answer to a request.
pub(crate) fn answer(
    client: &mut Client,
    name: &str,
    seq: u32,
    within: Duration,
) -> Result<Vec<u8>, Failure> {
    let begun = Instant::now();
    loop {
        let left = within.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(Failure::new(
                Code::Timeout,
                format!("the session {name:?} did not take it within {within:?}"),
            )
            .hint("its command does not read its input; a part of it may have gone in"));
        }
        client.set_timeout(Some(left)).map_err(|error| Failure::system("cannot wait", &error))?;
        match client.next_event() {
            Ok(Some(Event::Done { seq: done, answer })) if done == seq => return Ok(answer),
            Ok(Some(Event::Refused { seq: refused, failure })) if refused == seq => return Err(failure),
            Ok(Some(Event::Exit(_))) => {
                return Err(Failure::new(Code::Ended, format!("the session {name:?} has ended")));
            }
            Ok(Some(_)) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
                ) => {}
            Ok(None) | Err(_) => return Err(gone(name)),
        }
    }
}

fn gone(name: &str) -> Failure {
    Failure::new(
        Code::Unreachable,
        format!("the holder of the session {name:?} went away before it answered"),
    )
    .hint(format!("`wharf show {name}` says what became of it; it may have taken a part of the input"))
}
