//! Listens in a session's room for the events that its processes report, and relays them to the daemon.
//!
//! The daemon's own socket is out of a container's reach, and the daemon could not tell which session a process in a
//! container belongs to. The room tells: whoever speaks in it speaks for its session and no other.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wharf_backend::Status;
use wharf_boundary::SessionDir;
use wharf_holder_client::session::ChannelRelay;
use wharf_model::{Text, Ticket};

use crate::holder_handshake;
use crate::session_dirs::ROOM;

/// The socket's name in the room.
const NAME: &str = "events";
/// The variable with the socket's path.
const VARIABLE: &str = "WHARF_EVENTS";
/// How many processes of one session may be connected at once. Further ones are disconnected.
const MAX_SPEAKERS: usize = 16;
/// How long the listener pauses after `accept` failed.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket in a room.
pub(crate) struct EventsListener {
    listener: UnixListener,
}

impl EventsListener {
    /// Listens in the room of the session in a directory. Replaces the socket that another daemon left.
    pub(crate) fn open(home: &Path) -> io::Result<Self> {
        let session = SessionDir::open(home)?;
        // Without a room, the session's own directory would be taken for it.
        if session.own().kind(ROOM)?.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let room = session.room()?;
        let (_, mode) = room.owner()?;
        let listener = holder_handshake::listen_in_room(home, session.own(), &room, NAME, mode & 0o777)?;
        Ok(Self { listener })
    }

    /// Relays events until the session is over. `state` is the instance's directory, with the daemon's socket.
    pub(crate) async fn run(self, ticket: Ticket, state: PathBuf, mut status: watch::Receiver<Status>) {
        let relay = Arc::new(ChannelRelay::of(&ticket, state));
        let mut speakers = JoinSet::new();
        let over = async { drop(status.wait_for(|status| status.exit.is_some() || status.broken).await) };
        tokio::pin!(over);
        loop {
            let speaker = tokio::select! {
                () = &mut over => return,
                Some(_) = speakers.join_next() => continue,
                accepted = self.listener.accept() => match accepted {
                    Ok((speaker, _)) => speaker,
                    Err(error) => {
                        // Most likely out of descriptors, which passes.
                        tracing::warn!(session = %ticket.id, %error, "its container is not heard for now");
                        tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                        continue;
                    }
                },
            };
            if speakers.len() < MAX_SPEAKERS {
                let relay = Arc::clone(&relay);
                speakers.spawn(async move { relay.hand_on(speaker).await });
            } else {
                drop(speaker);
                // Slow down a process that connects in a loop.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

/// Points the variable of the events socket at the room's. Removes it where there is no room, on another host.
pub(crate) fn set_events_path(env: &mut Vec<(Text, Text)>, room: Option<&str>) {
    match room {
        Some(room) => {
            for (_, value) in env.iter_mut().filter(|(name, _)| name.as_bytes() == VARIABLE.as_bytes()) {
                *value = format!("{room}/{NAME}").into();
            }
        }
        None => env.retain(|(name, _)| name.as_bytes() != VARIABLE.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;
    use tokio::time::timeout;
    use wharf_model::Home;

    use super::*;
    use crate::ticket_data::test_ticket as ticket;

    #[tokio::test]
    async fn an_ear_is_put_over_whatever_a_container_left_there() {
        let dir = tempfile::tempdir().unwrap();
        let (home, room) = (dir.path().join("s"), dir.path().join("s/room"));
        fs::create_dir_all(&room).unwrap();
        fs::set_permissions(&room, Permissions::from_mode(0o700)).unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "x").unwrap();
        fs::set_permissions(&precious, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&precious, room.join(NAME)).unwrap();
        fs::rename(&room, dir.path().join("away")).unwrap();
        assert_eq!(EventsListener::open(&home).err().unwrap().kind(), io::ErrorKind::NotFound);
        fs::rename(dir.path().join("away"), &room).unwrap();
        let first = EventsListener::open(&home).unwrap();
        fs::remove_file(room.join(NAME)).unwrap();
        fs::create_dir_all(room.join(NAME).join("full")).unwrap();
        let again = EventsListener::open(&home).unwrap();
        drop(first);
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&room.join(NAME)), mode(&precious)), (0o700, 0o600));
        let _speaker = UnixStream::connect(room.join(NAME)).await.unwrap();
        again.listener.accept().await.unwrap();
        assert_eq!(fs::read_dir(&home).unwrap().count(), 1, "nothing is left beside the room");
    }

    #[tokio::test]
    async fn nobody_in_a_container_hands_us_a_descriptor() {
        use std::os::fd::AsFd;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        fs::create_dir_all(home.join("room")).unwrap();
        let _listener = EventsListener::open(&home).unwrap();
        let _handshake = holder_handshake::HolderHandshake::listen(&home, true).unwrap();
        let (null, bytes) = (fs::File::open("/dev/null").unwrap(), [io::IoSlice::new(b"x")]);
        let (one, other) = UnixStream::pair().unwrap();
        wharf_boundary::take_descriptors(&other, false);
        let send = |from: &UnixStream| wharf_holder::linux::send(from.as_fd(), &bytes, &[null.as_fd()]);
        if send(&one).is_ok() && std::env::var_os("CI").is_none() {
            eprintln!("left out: this kernel refuses no descriptors (Linux 6.16 does)");
            return;
        }
        for name in [NAME, holder_handshake::SOCKET] {
            let caller = UnixStream::connect(home.join("room").join(name)).await.unwrap();
            assert_eq!(send(&caller).unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{name}");
        }
    }

    #[tokio::test]
    async fn so_many_of_one_session_are_heard_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let daemon = UnixListener::bind(dir.path().join(Home::EVENTS_SOCKET)).unwrap();
        let home = dir.path().join("s");
        fs::create_dir_all(home.join("room")).unwrap();
        let listener = EventsListener::open(&home).unwrap();
        let (tell, status) = watch::channel(Status::default());
        let ticket: Ticket = ticket(&home);
        let task = tokio::spawn(listener.run(ticket, dir.path().to_owned(), status));
        let mut speakers = Vec::new();
        for _ in 0..3 * MAX_SPEAKERS {
            speakers.push(UnixStream::connect(home.join("room").join(NAME)).await.unwrap());
        }
        let mut kept = Vec::new();
        for _ in 0..MAX_SPEAKERS {
            kept.push(daemon.accept().await.unwrap());
        }
        let mut closed = 0;
        for mut speaker in speakers.drain(MAX_SPEAKERS..) {
            let heard = timeout(Duration::from_secs(20), speaker.read(&mut [0])).await;
            closed += usize::from(matches!(heard.expect("it is closed"), Ok(0) | Err(_)));
        }
        assert_eq!(closed, 2 * MAX_SPEAKERS);
        tell.send_modify(|status| status.broken = true);
        task.await.unwrap();
    }

    #[test]
    fn only_the_variable_is_changed_and_only_where_it_is() {
        let mut env = vec![("A".into(), "1".into()), ("WHARF_EVENTS".into(), "/host".into())];
        set_events_path(&mut env, Some("/run/wharf/room"));
        assert_eq!(
            env,
            [("A".into(), "1".into()), ("WHARF_EVENTS".into(), Text::from("/run/wharf/room/events"))]
        );
        set_events_path(&mut env, None);
        assert_eq!(env, [("A".into(), "1".into())]);
    }
}
