//! What listens in a session's room for what its processes tell, and hands it to the daemon.
//!
//! The daemon's own socket is out of a container's reach, and its processes are nobody that this host knows. Whoever speaks in
//! a room speaks for its session, and for no other: the room says which one it is, not the speaker.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wharf_backend::Status;
use wharf_holder::linux;
use wharf_model::{Text, Ticket};

/// The socket's name in the room.
const NAME: &str = "events";
/// The variable that has its path.
const VARIABLE: &str = "WHARF_EVENTS";
/// How many of one session may speak at once. Further ones are closed at once.
const MOST: usize = 64;

/// A socket in a room.
pub(crate) struct Ear {
    listener: UnixListener,
}

impl Ear {
    /// Listens in the room of the session in a directory. One that another daemon left is replaced.
    pub(crate) fn open(home: &Path, room: &Path) -> io::Result<Self> {
        // A container writes in its room, and might lead us elsewhere there. So it is made outside, and put in its place.
        let made = home.join("ear");
        let _ = fs::remove_file(&made);
        let listener = linux::bind(&made)?;
        // The room itself may be a link of ours; nothing that a container made is followed.
        let room = fs::read_link(room).unwrap_or_else(|_| room.to_owned());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let room = rustix::fs::open(&room, flags, Mode::empty())?;
        let mode = rustix::fs::fstat(&room)?.st_mode & 0o777;
        fs::set_permissions(&made, Permissions::from_mode(mode))?;
        rustix::fs::renameat(rustix::fs::CWD, &made, &room, NAME)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener: UnixListener::from_std(listener)? })
    }

    /// Hands on what is told until the session is over.
    pub(crate) async fn listen(self, ticket: Ticket, daemon: PathBuf, mut status: watch::Receiver<Status>) {
        let introduction = serde_json::json!({
            "v": 1, "session": ticket.id.as_str(), "token": ticket.token, "only": true
        });
        let introduction = format!("{introduction}\n");
        let mut speakers = JoinSet::new();
        let over = status.wait_for(|status| status.exit.is_some() || status.broken);
        tokio::pin!(over);
        loop {
            let speaker = tokio::select! {
                _ = &mut over => return,
                Some(_) = speakers.join_next() => continue,
                accepted = self.listener.accept() => match accepted {
                    Ok((speaker, _)) => speaker,
                    Err(error) => {
                        tracing::warn!(session = %ticket.id, %error, "nothing more is heard from its container");
                        return;
                    }
                },
            };
            if speakers.len() < MOST {
                speakers.spawn(hand_on(speaker, daemon.clone(), introduction.clone()));
            }
        }
    }
}

async fn hand_on(mut speaker: UnixStream, daemon: PathBuf, introduction: String) -> io::Result<()> {
    let stream = linux::connect(&daemon)?;
    stream.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(stream)?;
    stream.write_all(introduction.as_bytes()).await?;
    copy_bidirectional(&mut speaker, &mut stream).await.map(drop)
}

/// Has a command in a container speak into its room, where it would have spoken to the daemon. On another host there is
/// none.
pub(crate) fn aim(env: &mut Vec<(Text, Text)>, room: Option<&str>) {
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
    use super::*;

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
        let first = Ear::open(&home, &room).unwrap();
        let again = Ear::open(&home, &room).unwrap();
        drop(first);
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&room.join(NAME)), mode(&precious)), (0o700, 0o600));
        let _speaker = UnixStream::connect(room.join(NAME)).await.unwrap();
        again.listener.accept().await.unwrap();
        assert_eq!(fs::read_dir(&home).unwrap().count(), 1, "nothing is left beside the room");
    }

    #[test]
    fn only_the_variable_is_changed_and_only_where_it_is() {
        let mut env = vec![("A".into(), "1".into()), ("WHARF_EVENTS".into(), "/host".into())];
        aim(&mut env, Some("/run/wharf/room"));
        assert_eq!(
            env,
            [("A".into(), "1".into()), ("WHARF_EVENTS".into(), Text::from("/run/wharf/room/events"))]
        );
        aim(&mut env, None);
        assert_eq!(env, [("A".into(), "1".into())]);
    }
}
