//! Sessions that a holder of another place holds, such as one in a container: whoever started it, everything above the
//! socket is the same.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use wharf_backend::{Connection, Result, Status};
use wharf_boundary::SessionDir;
use wharf_holder::frame::{self, Kind};
use wharf_holder::wire::{self, Hello, Start, Started};
use wharf_holder_client::reach;
use wharf_model::{Code, ExitRecord, Failure, Home, Size, Text};

use crate::carrier::{Carrier, update};
use crate::link::Link;
use crate::place;

pub use crate::keep::{given, read_ticket, start_of};

/// How long to wait before a holder without room for a connection is tried again.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The first frame that a holder gets: what to start, the ticket that it shall keep, the command and its variables.
pub fn start_frame(start: &Start, given: &[u8], argv: &[Text], env: &[(Text, Text)]) -> Result<Vec<u8>> {
    let invalid = |error: io::Error| Failure::new(Code::Invalid, error.to_string());
    let argv = wire::strings(argv.iter().map(Text::as_bytes)).map_err(invalid)?;
    let env = wire::variables(env).map_err(invalid)?;
    let control = serde_json::to_vec(start).map_err(|error| invalid(error.into()))?;
    let payload = wire::sections(&[&control, given, &argv, &env]);
    if payload.len() > frame::MOST {
        return Err(Failure::new(Code::TooLong, "the arguments and variables are more than 16 MiB"));
    }
    Ok(frame::encode(Kind::Start, 1, &payload))
}

/// Has a fresh holder start its session: what it says of it, and its duplicates. The caller sets the deadline.
pub async fn begin(stream: &UnixStream, frame: &[u8]) -> Result<(Started, Vec<OwnedFd>)> {
    begin_with(stream, frame, &[]).await
}

/// The same for a holder that needs descriptors for it.
pub async fn begin_with(
    stream: &UnixStream,
    frame: &[u8],
    passed: &[BorrowedFd<'_>],
) -> Result<(Started, Vec<OwnedFd>)> {
    let gone =
        |error: io::Error| Failure::system("the holder went away before the command was started", &error);
    place::send(stream, frame, passed).await.map_err(gone)?;
    let (kind, payload, descriptors) = place::first_answer(stream).await.map_err(gone)?;
    if kind == Kind::Error as u8 {
        return Err(place::parse(&payload)?);
    }
    Ok((place::parse(&payload)?, descriptors))
}

/// Finds the holder of the session in a directory, and sees to it that it is the one of its ticket. The caller sets the
/// deadline.
pub async fn find(home: &Path) -> io::Result<(UnixStream, Hello)> {
    let mut knocked = None;
    let stream = loop {
        match reach::connect_now(home) {
            // The kernel tells nobody when there is room for a connection again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::sleep(CONNECT_RETRY_INTERVAL).await;
            }
            // Its socket may have been taken away from a holder that lives: it listens again when it hears of that.
            Err(error) if reach::is_nobody(&error) => {
                let waited = *knocked.get_or_insert_with(|| reach::knock(home).then(Instant::now));
                match waited {
                    Some(since) if since.elapsed() < reach::KNOCKED => {
                        tokio::time::sleep(CONNECT_RETRY_INTERVAL).await;
                    }
                    _ => return Err(error),
                }
            }
            stream => break UnixStream::from_std(stream?)?,
        }
    };
    let hello = Hello { role: "program".into(), features: features(), ..Hello::default() };
    let (_, welcome, _) = place::exchange(&stream, Kind::Hello, &serde_json::to_vec(&hello)?).await?;
    Ok((stream, serde_json::from_slice(&welcome)?))
}

/// The session in a directory as the contract has it. A holder that dies is not replaced.
pub fn connect(home: PathBuf, stream: UnixStream, first: Status) -> Arc<dyn Connection> {
    Arc::new(Link::new(Carrier::open(home, None, stream, None, first)))
}

/// What is known of a session at first: of one that was found, what its holder said.
pub fn first_status(pid: i32, size: Size, welcome: Option<&Hello>) -> Status {
    let pid = Some(pid).filter(|pid| *pid > 0);
    let mut first = Status { pid, size: size.sane(), ..Status::default() };
    if let Some(status) = welcome.and_then(|hello| hello.status.as_ref()) {
        update(&mut first, status);
    }
    first
}

/// The exit record of a run. A restart that was interrupted has put it aside under the run's number.
pub fn read_exit(dir: &Path, run: u32) -> Option<ExitRecord> {
    let dir = SessionDir::open(dir).ok()?;
    let parse = |read: io::Result<Option<Vec<u8>>>| serde_json::from_slice(&read.ok()??).ok();
    parse(dir.read_exit()).or_else(|| parse(dir.read_exit_of(run)))
}

/// Whether there is an exit record, whoever wrote it.
pub(crate) fn has_exit(dir: &Path) -> bool {
    SessionDir::open(dir).is_ok_and(|dir| dir.has_exit())
}

/// Puts aside the exit record of a session that lives: it is not its holder's, and nobody shall believe it later.
pub(crate) fn put_forged_exit_aside(home: &Path) {
    let aside = || -> io::Result<()> {
        let dir = SessionDir::open(home)?;
        if dir.has_exit() && !dir.has_room() {
            dir.own().put_aside(Home::EXIT)?;
        }
        Ok(())
    };
    // What cannot be put aside is replaced at its end.
    let _ = aside();
}

/// The exit record as it stands now.
pub(crate) fn read_exit_now(dir: &Path) -> Option<ExitRecord> {
    serde_json::from_slice(&SessionDir::open(dir).ok()?.read_exit().ok()??).ok()
}

/// What we can do, for a holder to know.
pub(crate) fn features() -> Vec<String> {
    wire::FEATURES.iter().map(|feature| (*feature).to_owned()).collect()
}
