//! The handshake with a new holder in a container: the holder connects to us, and gets its start request.
//!
//! Whoever gets the start request sees the session's variables, and counts as the session from then on. In a shared
//! container a neighbour can connect before the holder does. So the kernel says who a caller is, not the caller; one
//! that is not the holder is disconnected, and the wait goes on.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode};
use tokio::net::{UnixListener, UnixStream};
use wharf_boundary::{Dir, Peer, take_descriptors};
use wharf_holder::linux::{self, proc};
use wharf_holder::wire::{Duplicate, StartedReply};
use wharf_model::{Failure, ProcessIdentity};

use crate::session_dirs::ROOM;

/// The name of the socket that a holder connects to. The name on disk is older.
pub(crate) const SOCKET: &str = "birth";

/// How many callers other than the holder are disconnected before the start fails.
const MAX_OTHER_CALLERS: u32 = 1024;

/// A socket that waits for a new holder.
pub(crate) struct HolderHandshake {
    listener: UnixListener,
    /// The room, held open: a container may rename it, and give another directory its name.
    room: Dir,
}

/// Who the caller must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedCaller {
    /// The first process of a container that is not shared.
    First,
    /// The process that the engine started in a shared container, by the engine's number of it.
    Beside(i32),
}

impl HolderHandshake {
    /// Listens in the room that the holder will have. Nobody but us has seen that room yet.
    pub(crate) fn listen(home: &Path, other_user: bool) -> Result<Self, Failure> {
        let listen = || -> io::Result<Self> {
            let own = Dir::open(home)?;
            let room = own.dir(ROOM)?;
            let listener = listen_in_room(home, &own, &room, SOCKET, if other_user { 0o777 } else { 0o700 })?;
            Ok(Self { listener, room })
        };
        listen().map_err(|error| {
            Failure::system(format!("cannot listen in the room of {}", home.display()), &error)
        })
    }

    /// Accepts the holder, and returns who it is on this host. Nobody can connect afterwards. The caller sets the
    /// deadline.
    pub(crate) async fn accept_holder(
        &self,
        expected: ExpectedCaller,
    ) -> io::Result<(UnixStream, Option<ProcessIdentity>)> {
        for _ in 0..MAX_OTHER_CALLERS {
            let (stream, _) = self.listener.accept().await?;
            match verify_caller(&stream, expected)? {
                Ok(holder) => {
                    // The holder passes a pidfd of its command.
                    take_descriptors(&stream, true);
                    let _ = self.room.remove(SOCKET);
                    return Ok((stream, holder));
                }
                Err(why) => tracing::warn!(why, "somebody else called in the place of a holder"),
            }
        }
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "too many others called in the holder's place"))
    }
}

/// Identifies a caller on this host as far as possible, or says why it is not the expected one.
fn verify_caller(
    stream: &UnixStream,
    expected: ExpectedCaller,
) -> io::Result<Result<Option<ProcessIdentity>, &'static str>> {
    // A caller without a number is in a namespace that we cannot see: the engine has one of its own.
    let pid = Some(Peer::of(stream)?.pid).filter(|pid| *pid > 0);
    let known = pid.and_then(identity);
    match (expected, pid) {
        (ExpectedCaller::First, Some(pid)) if Caller::of(pid).is_some_and(|caller| !caller.is_first()) => {
            return Ok(Err("it is not the container's first process"));
        }
        (ExpectedCaller::Beside(started), Some(pid))
            if !Caller::of(pid).is_some_and(|caller| caller.was_started_as(started)) =>
        {
            return Ok(Err("it is not the process that the engine started"));
        }
        (ExpectedCaller::Beside(_), None) => {
            let why = "the engine's processes are not seen from here, and others are in the same container";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        _ => {}
    }
    // The number may be reused by now: check that the process that called still exists, after it was looked at.
    if Peer::process(stream).is_some_and(|pidfd| proc::ends(&pidfd, Duration::ZERO)) {
        return Ok(Err("it has gone already"));
    }
    Ok(Ok(known))
}

/// A process as `/proc` shows it: its number in each namespace from ours inwards, and in how many its parent has one.
struct Caller {
    numbers: Vec<i32>,
    parent_depth: usize,
}

impl Caller {
    /// None where the process cannot be seen.
    fn of(pid: i32) -> Option<Self> {
        let (numbers, parent) = numbers(pid)?;
        let parent_depth = parent_depth_of(parent);
        Some(Self { numbers, parent_depth })
    }

    /// Whether it is the first process of its namespace. With a single number it shares ours, as an engine can be
    /// configured.
    fn is_first(&self) -> bool {
        self.numbers.len() == 1 || self.numbers.last() == Some(&1)
    }

    /// Whether an engine started it in a container, and knows it by this number. The engine may have a namespace
    /// between ours and the container's, so the number alone could be a neighbour's in another namespace. But a
    /// process that a neighbour starts has its parent inside the container, and one that the engine starts has its
    /// parent outside.
    fn was_started_as(&self, started: i32) -> bool {
        match self.numbers.as_slice() {
            [only] => *only == started,
            [outer @ .., _] => outer.contains(&started) && self.parent_depth < self.numbers.len(),
            [] => false,
        }
    }
}

/// The numbers of a process, and its parent's number.
fn numbers(pid: i32) -> Option<(Vec<i32>, i32)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let numbers = field("NSpid:")?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((numbers, field("PPid:")?.trim().parse().ok()?))
}

/// How many numbers a parent has: none where it is outside of all that we see.
fn parent_depth_of(pid: i32) -> usize {
    if pid == 0 { 0 } else { numbers(pid).map_or(usize::MAX, |(numbers, _)| numbers.len()) }
}

/// Listens at a name in a room. Binds the socket in the session's own directory and renames it into the room: a
/// container could redirect a bind in its room.
pub(crate) fn listen_in_room(
    home: &Path,
    own: &Dir,
    room: &Dir,
    name: &str,
    mode: u32,
) -> io::Result<UnixListener> {
    let made = format!("{name}.new");
    own.remove(&made)?;
    let listener = linux::bind(&home.join(&made))?;
    take_descriptors(&listener, false);
    listener.set_nonblocking(true)?;
    rustix::fs::chmodat(own, made.as_str(), Mode::from_raw_mode(mode), AtFlags::empty())?;
    // A rename cannot replace a directory.
    room.remove_tree(name)?;
    own.rename(&made, room, name)?;
    UnixListener::from_std(listener)
}

/// Identifies a command on this host: its holder knows only its number in the container.
pub(crate) fn command_identity(started: &StartedReply, descriptors: &[OwnedFd]) -> Option<ProcessIdentity> {
    let at = started.descriptors.iter().position(|kind| *kind == Duplicate::Command)?;
    let fd = descriptors.get(at)?.as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    identity(pid.trim().parse().ok().filter(|pid| *pid > 0)?)
}

fn identity(pid: i32) -> Option<ProcessIdentity> {
    proc::identity(pid, &proc::boot().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_engine_started_is_what_it_started() {
        let caller = |numbers: &[i32], parent_depth| Caller { numbers: numbers.to_vec(), parent_depth };
        assert!(caller(&[4000, 17], 1).was_started_as(4000));
        assert!(caller(&[4000, 199, 17], 2).was_started_as(199), "the engine has a namespace of its own");
        assert!(caller(&[4000], 1).was_started_as(4000), "the container has none of its own");
        assert!(!caller(&[4000, 17], 1).was_started_as(17), "that is its number in the container");
        assert!(!caller(&[4001, 18], 1).was_started_as(4000), "it is another");
        assert!(
            !caller(&[199, 300, 17], 3).was_started_as(199),
            "a neighbour whose number is another's over there"
        );
        assert!(!caller(&[4000, 17], usize::MAX).was_started_as(4000), "its parent is not seen");
        assert!(caller(&[4000, 1], 1).is_first() && caller(&[4000], 1).is_first());
        assert!(!caller(&[4000, 7], 2).is_first());
    }

    #[test]
    fn this_process_has_a_number_and_a_parent() {
        let own = Caller::of(std::process::id() as i32).unwrap();
        assert_eq!(own.numbers.first(), Some(&(std::process::id() as i32)));
        assert!(own.parent_depth >= 1);
    }
}
