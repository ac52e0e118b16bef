//! Types into a session: straight to its holder where that can be reached, else through the daemon.

use std::path::Path;
use std::time::{Duration, Instant};

use wharf_holder_client::client::{Client, Event};
use wharf_model::{Code, Failure};

use crate::{call, place};

/// How long typing may take where nothing else is said.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The most that goes in one piece, which no other input mixes with.
pub(crate) const MAX_WRITE_LEN: usize = 1 << 20;

/// How long to wait before input is offered again to a terminal that has too much of it already.
const INPUT_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// How long a holder may take to say how much of an input is in the terminal.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// One session to type into.
pub(crate) struct Keyboard {
    name: String,
    holder: Option<Client>,
    /// Bytes that are in the terminal.
    typed: usize,
    /// How much of its time the first input has spent on a holder that did not answer.
    spent: Duration,
}

/// The least time that is left for the daemon, which finds out what ails the holder.
const MIN_DAEMON_TIMEOUT: Duration = Duration::from_millis(100);

impl Keyboard {
    /// Finds the session, in at most the time that its first input may take.
    pub(crate) fn of(name: &str, within: Duration) -> Result<Self, Failure> {
        let dir = place::session(&place::home()?, name)?;
        // What runs inside a session asks the daemon, which knows what it may do.
        let inside = std::env::var_os("WHARF_SESSION").is_some();
        let begun = Instant::now();
        let holder = if inside { None } else { holder(&dir, within) };
        let spent = if holder.is_some() { Duration::ZERO } else { begun.elapsed() };
        Ok(Self { name: name.to_owned(), holder, typed: 0, spent })
    }

    /// Types bytes, at most [`MAX_WRITE_LEN`] of them. Returns when all are in the terminal; where that takes too long, it says
    /// how many are, with those of earlier calls, and no more of them will follow.
    pub(crate) fn type_in(&mut self, bytes: &[u8], within: Duration) -> Result<(), Failure> {
        let typed = if let Some(client) = &mut self.holder {
            offer(client, &self.name, bytes, within)?
        } else {
            let (name, piece) = (&self.name, bytes.to_vec());
            let (before, within) = (self.typed, within.saturating_sub(self.spent).max(MIN_DAEMON_TIMEOUT));
            self.spent = Duration::ZERO;
            call::once(async |client| client.write(name, piece, within).await).map_err(|failure| {
                match failure.code {
                    Code::Timeout if before > 0 => {
                        let message = format!("{} bytes went in, and then {}", before, failure.message);
                        Failure { message, ..failure }
                    }
                    _ => failure,
                }
            })?;
            bytes.len()
        };
        self.typed += typed;
        if typed == bytes.len() {
            return Ok(());
        }
        Err(Failure::new(
            Code::Timeout,
            format!("the session {:?} took {} bytes and no more within {within:?}", self.name, self.typed),
        )
        .hint("its command does not read its input; the rest was not typed and will not be"))
    }

    /// Sends a signal to the command.
    pub(crate) fn signal(&mut self, signal: i32) -> Result<(), Failure> {
        if let Some(client) = &mut self.holder {
            let seq = client.signal(signal, false).map_err(|_| gone(&self.name))?;
            return answer(client, &self.name, seq, WRITE_TIMEOUT).map(drop);
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

fn holder(dir: &Path, within: Duration) -> Option<Client> {
    Client::connect_within(dir, "program", within).ok()
}

/// Offers one input, again while too much of others waits. Returns how many of its bytes are in the terminal in the end.
fn offer(client: &mut Client, name: &str, bytes: &[u8], within: Duration) -> Result<usize, Failure> {
    let begun = Instant::now();
    loop {
        let left = within.saturating_sub(begun.elapsed());
        let seq = client.send_input(bytes, true).map_err(|_| gone(name))?;
        match answer(client, name, seq, left) {
            Ok(_) => return Ok(bytes.len()),
            Err(failure) if failure.code == Code::Busy => {
                if left.is_zero() {
                    return Ok(0);
                }
                std::thread::sleep(INPUT_RETRY_PAUSE.min(left));
            }
            Err(failure) if failure.code == Code::Timeout && client.has("cancel") => {
                return withdraw(client, name, seq, bytes.len()).ok_or(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Takes back what is not typed yet. How many of its bytes went in; none where that cannot be told.
fn withdraw(client: &mut Client, name: &str, seq: u32, of: usize) -> Option<usize> {
    let cancel = client.cancel(seq).ok()?;
    // The holder answers in order: what it has to say of the input itself comes first.
    match answer_to(client, name, &[seq, cancel], CANCEL_TIMEOUT) {
        Ok((which, _)) if which == seq => Some(of),
        Ok((_, json)) => serde_json::from_slice::<Option<usize>>(&json).ok()?,
        Err(refused) => (refused.code == Code::Busy).then_some(0),
    }
}

/// Waits for the answer to a request.
pub(crate) fn answer(
    client: &mut Client,
    name: &str,
    seq: u32,
    within: Duration,
) -> Result<Vec<u8>, Failure> {
    answer_to(client, name, &[seq], within).map(|(_, answer)| answer)
}

/// Waits for the first answer to one of several requests.
fn answer_to(
    client: &mut Client,
    name: &str,
    wanted: &[u32],
    within: Duration,
) -> Result<(u32, Vec<u8>), Failure> {
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
            Ok(Some(Event::Done { seq, answer })) if wanted.contains(&seq) => return Ok((seq, answer)),
            Ok(Some(Event::Refused { seq, failure })) if wanted.contains(&seq) => return Err(failure),
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
