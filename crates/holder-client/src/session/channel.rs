//! The channel of a session in a sandbox, from this side: whoever asks on it gets a line to the socket of events, on which
//! everything is told for that session, whatever is said.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wharf_backend::Status;
use wharf_boundary::channel;
use wharf_model::Ticket;

use super::channel_relay::ChannelRelay;

/// How many lines of one session there may be at once. Further requests wait until one is closed.
const MAX_LINES: usize = 64;

/// Answers on a channel until its session is over. `state` has the socket of events.
pub(super) async fn serve(
    outside: OwnedFd,
    ticket: Ticket,
    state: PathBuf,
    mut status: watch::Receiver<Status>,
) {
    let relay = Arc::new(ChannelRelay::of(&ticket, state));
    // One that cannot be watched is one that nobody is heard on; what they tell fails in time.
    let Ok(outside) = watched(outside) else { return };
    let mut lines = JoinSet::new();
    let over = status.wait_for(|status| status.exit.is_some() || status.broken);
    tokio::pin!(over);
    loop {
        tokio::select! {
            _ = &mut over => return,
            Some(_) = lines.join_next() => continue,
            ready = outside.readable(), if lines.len() < MAX_LINES => {
                if ready.is_err() {
                    return;
                }
            }
        }
        match outside.try_io(Interest::READABLE, || channel::request(outside.as_fd())) {
            Ok(true) => {
                if let Ok(line) = channel::answer(outside.as_fd()) {
                    let relay = Arc::clone(&relay);
                    lines.spawn(async move { relay.hand_on(UnixStream::from_std(line)?).await });
                }
            }
            // Nonsense costs whoever sends it an answer.
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
        // Others have their turn after every request.
        tokio::task::yield_now().await;
    }
}

/// The channel as the runtime watches it: another kind of socket, and watched alike.
fn watched(outside: OwnedFd) -> io::Result<UnixStream> {
    let outside = std::os::unix::net::UnixStream::from(outside);
    outside.set_nonblocking(true)?;
    UnixStream::from_std(outside)
}
