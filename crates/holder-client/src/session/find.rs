//! Finds the holder of a session that was started, and connects to it; whoever started it, everything above the socket is the
//! same.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use wharf_backend::{BackendTasks, Connection, Status};
use wharf_holder::frame::Kind;
use wharf_holder::wire::Hello;
use wharf_model::Size;

use super::connection::HolderConnection;
use super::exchange::exchange;
use super::holder_client::{HolderClient, update};
use crate::greeting;
use crate::reach::{self, Knock};

/// How long to wait before a holder without room for a connection is tried again.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Finds the holder of the session in a directory, and sees to it that it is the one of its ticket. The caller sets the
/// deadline.
pub async fn find(home: &Path) -> io::Result<(UnixStream, Hello)> {
    let mut knock = Knock::default();
    let stream = loop {
        match reach::connect_now(home) {
            // The kernel tells nobody when there is room for a connection again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || knock.again(home, &error) => {
                tokio::time::sleep(CONNECT_RETRY_INTERVAL).await;
            }
            stream => break UnixStream::from_std(stream?)?,
        }
    };
    let (_, welcome, _) = exchange(&stream, Kind::Hello, &greeting::hello("program", "")?).await?;
    Ok((stream, serde_json::from_slice(&welcome)?))
}

/// The session in a directory as the contract has it. `tasks` owns the task that serves the connection. A holder that dies is
/// not replaced.
pub fn connect(
    tasks: &BackendTasks,
    home: PathBuf,
    stream: UnixStream,
    first: Status,
) -> Arc<dyn Connection> {
    Arc::new(HolderConnection::new(HolderClient::open(tasks, home, None, stream, None, first)))
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
