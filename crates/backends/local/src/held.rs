//! Sessions that a holder of another place holds, such as one in a container: whoever started it, everything above the
//! socket is the same.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::UnixStream;
use wharf_backend::{Connection, Result, Status};
use wharf_holder::frame::{self, Kind};
use wharf_holder::linux;
use wharf_holder::wire::{self, Hello, Start, Started};
use wharf_model::{Code, ExitRecord, Failure, Home, Size, Text};

use crate::carrier::{Carrier, update};
use crate::link::Link;
use crate::place;

pub use crate::keep::{given, read_ticket, start_of};

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

/// Finds the holder of the session in a directory. The caller sets the deadline.
pub async fn find(home: &Path) -> io::Result<(UnixStream, Hello)> {
    let stream = linux::connect(&home.join(Home::SOCKET))?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
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
    let read = |name: &str| serde_json::from_slice(&std::fs::read(dir.join(name)).ok()?).ok();
    read(Home::EXIT).or_else(|| read(&format!("exit.{run}.json")))
}

/// What we can do, for a holder to know.
pub(crate) fn features() -> Vec<String> {
    wire::FEATURES.iter().map(|feature| (*feature).to_owned()).collect()
}
