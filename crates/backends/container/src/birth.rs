//! The first word with the holder in a container: it calls us, and is told what to start.
//!
//! Whoever is told what to start sees its variables, and is believed to be the session from then on. In a container that
//! sessions share, a neighbour can come to the socket before the holder does. So a caller is asked who it is, by the kernel
//! and not by its word, and one who is not the holder is let go while the wait goes on.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode};
use tokio::net::{UnixListener, UnixStream};
use wharf_boundary::{Dir, Peer, take_descriptors};
use wharf_holder::linux::{self, proc};
use wharf_holder::wire::{Duplicate, Started};
use wharf_model::{Failure, ProcessIdentity};

use crate::rooms::ROOM;

/// The name of the socket that a holder calls.
pub(crate) const SOCKET: &str = "birth";

/// How many others than the holder may call before it is given up.
const MAX_STRANGERS: u32 = 1024;

/// Somebody who waits for a holder's call.
pub(crate) struct Birth {
    listener: UnixListener,
    /// The room, held: in a container it may get another name, and another room its name.
    room: Dir,
}

/// Whom the caller must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The first process of a container, in which nobody else is yet.
    First,
    /// The process that the engine started in a container with others, by the number that it has for the engine.
    Beside(i32),
}

impl Birth {
    /// Waits in the room that the holder will have. Nobody but us has seen that room yet.
    pub(crate) fn expect(home: &Path, other_user: bool) -> Result<Self, Failure> {
        let listen = || -> io::Result<Self> {
            let own = Dir::open(home)?;
            let room = own.dir(ROOM)?;
            let listener = listen(home, &own, &room, SOCKET, if other_user { 0o777 } else { 0o700 })?;
            Ok(Self { listener, room })
        };
        listen().map_err(|error| {
            Failure::system(format!("cannot listen in the room of {}", home.display()), &error)
        })
    }

    /// The holder's call, and who it is on this host. After it nobody else is listened to. The caller sets the deadline.
    pub(crate) async fn call(&self, expected: Expected) -> io::Result<(UnixStream, Option<ProcessIdentity>)> {
        for _ in 0..MAX_STRANGERS {
            let (stream, _) = self.listener.accept().await?;
            match proven(&stream, expected)? {
                Ok(holder) => {
                    // It tells by one who its command is.
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

/// Who a caller is on this host, where that can be told, or why it is not the one who is expected.
fn proven(
    stream: &UnixStream,
    expected: Expected,
) -> io::Result<Result<Option<ProcessIdentity>, &'static str>> {
    // One without a number is in no namespace that we see: that of an engine which has one to itself.
    let pid = Some(Peer::of(stream)?.pid).filter(|pid| *pid > 0);
    let known = pid.and_then(identity);
    match (expected, pid) {
        (Expected::First, Some(pid)) if Caller::of(pid).is_some_and(|caller| !caller.is_first()) => {
            return Ok(Err("it is not the container's first process"));
        }
        (Expected::Beside(started), Some(pid))
            if !Caller::of(pid).is_some_and(|caller| caller.was_started_as(started)) =>
        {
            return Ok(Err("it is not the process that the engine started"));
        }
        (Expected::Beside(_), None) => {
            let why = "the engine's processes are not seen from here, and others are in the same container";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        _ => {}
    }
    // The number may be another's by now: the process that called must be there still, after it was looked at.
    if Peer::pidfd(stream).is_some_and(|pidfd| proc::ends(&pidfd, Duration::ZERO)) {
        return Ok(Err("it has gone already"));
    }
    Ok(Ok(known))
}

/// A process as `/proc` has it: the numbers that it has, from our namespace inwards, and how many its parent has.
struct Caller {
    numbers: Vec<i32>,
    parent_depth: usize,
}

impl Caller {
    /// None where nothing can be seen of it.
    fn of(pid: i32) -> Option<Self> {
        let (numbers, parent) = numbers(pid)?;
        let parent_depth = numbers_of_parent(parent);
        Some(Self { numbers, parent_depth })
    }

    /// Whether it is the first one of its namespace. With one number it shares ours, as an engine may be told to have it.
    fn is_first(&self) -> bool {
        self.numbers.len() == 1 || self.numbers.last() == Some(&1)
    }

    /// Whether an engine started it in a container, and knows it by this number. The engine may have a namespace between ours
    /// and the container's. Its number alone would be a neighbour's in another namespace: but whatever a neighbour starts
    /// has its parent in the container, and what an engine starts there has it outside.
    fn was_started_as(&self, started: i32) -> bool {
        match self.numbers.as_slice() {
            [only] => *only == started,
            [outer @ .., _] => outer.contains(&started) && self.parent_depth < self.numbers.len(),
            [] => false,
        }
    }
}

/// The numbers of a process, and its parent's.
fn numbers(pid: i32) -> Option<(Vec<i32>, i32)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let numbers = field("NSpid:")?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((numbers, field("PPid:")?.trim().parse().ok()?))
}

/// How many numbers a parent has: none where it is above all that we see.
fn numbers_of_parent(pid: i32) -> usize {
    if pid == 0 { 0 } else { numbers(pid).map_or(usize::MAX, |(numbers, _)| numbers.len()) }
}

/// Listens at a name in a room. The socket is made in the session's own directory and renamed into its place: a container
/// writes in its room, and might lead us elsewhere there.
pub(crate) fn listen(home: &Path, own: &Dir, room: &Dir, name: &str, mode: u32) -> io::Result<UnixListener> {
    let made = format!("{name}.new");
    own.remove(&made)?;
    let listener = linux::bind(&home.join(&made))?;
    take_descriptors(&listener, false);
    listener.set_nonblocking(true)?;
    rustix::fs::chmodat(own, made.as_str(), Mode::from_raw_mode(mode), AtFlags::empty())?;
    // A directory in its place could not be replaced.
    room.remove_tree(name)?;
    own.rename(&made, room, name)?;
    UnixListener::from_std(listener)
}

/// Who a command is on this host: what its holder knows is its number in the container.
pub(crate) fn command(started: &Started, descriptors: &[OwnedFd]) -> Option<ProcessIdentity> {
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
