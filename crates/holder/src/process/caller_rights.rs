//! What a peer may ask of this holder: the same question that the daemon asks, once, when it connects.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use wharf_boundary::Peer as Credentials;
use wharf_model::{Act, Caller, Code, Failure, Grant, ProcessIdentity, SessionId, Whose, may};

use crate::frame::Kind;
use crate::linux::callers::{Found, Sessions};
use crate::linux::origin::{Outside, Traces};

/// How many processes a holder remembers that belong to no session.
pub(super) const MAX_OUTSIDE: usize = 64;

/// A peer, as far as its rights go.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallerRights {
    caller: Caller,
    whose: Whose,
}

/// What a peer is compared with: this session.
pub(super) struct Ours<'a> {
    pub(super) home: &'a Path,
    pub(super) command: &'a ProcessIdentity,
    /// Whether we are in a container: then nobody but the processes in it is seen from here, and those outside may all.
    pub(super) room: bool,
}

/// How many connections there may be at once.
const MAX_PEERS: usize = 256;
/// How many of these only those from outside of all sessions get: no session keeps its user and the daemon from it.
const RESERVED_FOR_OUTSIDE: usize = 32;

impl CallerRights {
    /// Whether it may be taken in, where there are that many connections already.
    pub(super) fn has_room(self, peers: usize) -> Result<(), Failure> {
        let room = if self.caller == Caller::Outside { MAX_PEERS } else { MAX_PEERS - RESERVED_FOR_OUTSIDE };
        if peers < room {
            return Ok(());
        }
        let full = format!("the session's holder has {peers} connections, and takes no more");
        Err(Failure::new(Code::Busy, full).hint("end some of those that are attached or wait for it"))
    }

    /// Whoever asked for the session.
    pub(super) const ASKER: Self = Self { caller: Caller::Outside, whose: Whose::Other };

    /// Looks at who has connected.
    pub(super) fn of(socket: &UnixStream, ours: &Ours<'_>, outside: &mut Outside) -> Self {
        let unclear = Self { caller: Caller::Unclear, whose: Whose::Other };
        let Ok(peer) = Credentials::of(socket) else { return unclear };
        // Seen from a container, number zero is a process of no namespace of ours: of the host, or of another container, which
        // has no way to this socket. No process inside can look like that. One in a namespace below ours has a number in ours
        // as well, and the way up to a namespace above is open to nobody: `setns` leads downwards alone.
        if ours.room && peer.pid == 0 {
            return Self::ASKER;
        }
        let pidfd = Credentials::process(socket);
        let pidfd = pidfd.as_ref().map(AsFd::as_fd);
        let rights = if ours.room {
            Traces::of_kin(peer.pid, pidfd).and_then(|traces| Self::in_room(&traces))
        } else {
            let traces = Traces::of(peer.pid, pidfd, |pid, start| outside.holds(pid, start));
            traces.and_then(|traces| Self::on_host(traces, ours, outside))
        };
        rights.unwrap_or(unclear)
    }

    fn on_host(mut traces: Traces, ours: &Ours<'_>, outside: &mut Outside) -> Option<Self> {
        let own: SessionId = ours.home.file_name()?.to_str()?.parse().ok()?;
        let sessions = Sessions::open(ours.home.parent()?).ok()?;
        if is_below_us(&traces) || traces.descends_from(ours.command.pid, ours.command.start) {
            // Nothing need say so; we know.
            traces.marks.insert(0, own.clone());
        }
        let Found { caller, session } = sessions.caller(&traces);
        // Below a holder of another instance stands nobody of ours, but whoever is there may start one.
        if caller == Caller::Outside && !traces.chain.iter().any(|link| link.holder) {
            outside.remember(&traces);
        }
        Some(Self { caller, whose: sessions.whose(session.as_ref(), &own) })
    }

    /// In a container variables and cgroups are the container's, and say nothing of who was started by whom. What is below no
    /// holder, and not below the first process either, an engine put there from outside.
    fn in_room(traces: &Traces) -> Option<Self> {
        let mut ancestors = traces.chain.iter().skip(1);
        let whose = if is_below_us(traces) {
            Whose::Own
        } else if ancestors.any(|link| link.holder || link.pid == 1) {
            // A neighbour in a container that is shared, or what is left of one whose holder is gone.
            Whose::Other
        } else {
            return traces.is_whole().then_some(Self::ASKER);
        };
        Some(Self { caller: Caller::Inside(Grant { control: false, confined: true }), whose })
    }

    /// Whether it may have that done which a frame asks for.
    pub(super) fn may(self, kind: Option<Kind>, watches: bool) -> Result<(), Failure> {
        let (act, what) = match kind {
            Some(Kind::Hello) if watches => (Act::Read, "attach to"),
            Some(Kind::Read) => (Act::Read, "read the output of"),
            // Whether a question is open is for the daemon to know: a session types into itself through that.
            Some(
                Kind::Input | Kind::Cancel | Kind::Borrow | Kind::Typed | Kind::Return | Kind::Duplicates,
            ) => (Act::Answer, "type into"),
            Some(Kind::CloseInput) => (Act::Change, "end the input of"),
            Some(Kind::Resize) => (Act::Change, "resize"),
            Some(Kind::Signal) => (Act::Change, "signal"),
            Some(Kind::Stop) => (Act::Change, "stop"),
            Some(Kind::Daemon) => (Act::Change, "start a daemon by the holder of"),
            Some(Kind::Exec) => (Act::Reach, "run a command in"),
            // Its state, and what nobody knows of.
            _ => (Act::See, "look at"),
        };
        may(self.caller, act, self.whose).map_err(|refused| refused.failure(format!("{what} this session")))
    }
}

fn is_below_us(traces: &Traces) -> bool {
    let own = std::process::id() as i32;
    traces.chain.iter().skip(1).any(|link| link.pid == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(whose: Whose, control: bool) -> CallerRights {
        CallerRights { caller: Caller::Inside(Grant { control, confined: false }), whose }
    }

    #[test]
    fn those_inside_leave_room_for_those_outside() {
        let inside = rights(Whose::Own, true);
        let most = MAX_PEERS - RESERVED_FOR_OUTSIDE;
        inside.has_room(most - 1).unwrap();
        assert_eq!(inside.has_room(most).unwrap_err().code, Code::Busy);
        CallerRights::ASKER.has_room(MAX_PEERS - 1).unwrap();
        assert_eq!(CallerRights::ASKER.has_room(MAX_PEERS).unwrap_err().code, Code::Busy);
    }

    #[test]
    fn in_a_room_only_who_is_seen_to_come_from_outside_may_type() {
        use crate::linux::origin::Link;
        let link = |pid, parent, holder| Link { pid, start: 1, leader: 0, holder, parent };
        let types = |chain: &[Link]| {
            let traces = Traces { chain: chain.to_vec(), ..Traces::default() };
            CallerRights::in_room(&traces).map(|rights| rights.may(Some(Kind::Input), false).is_ok())
        };
        let own = std::process::id() as i32;
        // An engine put it there, itself or by a shell.
        assert_eq!(types(&[link(20, 0, false)]), Some(true));
        assert_eq!(types(&[link(21, 20, false), link(20, 0, false)]), Some(true));
        // Our own, a neighbour whose holder an engine started, and what is left of one whose holder is gone.
        assert_eq!(types(&[link(20, own, false), link(own, 0, true)]), Some(false));
        assert_eq!(types(&[link(21, 20, false), link(20, 0, true)]), Some(false));
        assert_eq!(types(&[link(20, 1, false), link(1, 0, false)]), Some(false));
        // Of one whose ancestors end before they are looked at nothing is known.
        assert_eq!(types(&[link(21, 20, false)]), None);
        assert_eq!(types(&[]), None);
    }

    #[test]
    fn every_frame_asks_for_something() {
        let (other, own) = (rights(Whose::Other, false), rights(Whose::Own, false));
        for kind in (0..=u8::MAX).filter_map(Kind::known) {
            CallerRights::ASKER.may(Some(kind), true).unwrap();
            rights(Whose::Other, true).may(Some(kind), true).unwrap();
            let looks = matches!(
                kind,
                Kind::Hello | Kind::Status | Kind::Pending | Kind::Usage
                    // These are answers, or for one who has no session yet.
                    | Kind::Welcome | Kind::Ack | Kind::Error | Kind::Output | Kind::Gap | Kind::News | Kind::Exit
                    | Kind::Recall | Kind::Start | Kind::Resume
            );
            assert_eq!(other.may(Some(kind), false).is_ok(), looks, "{kind:?}");
            let types = matches!(
                kind,
                Kind::Input | Kind::Cancel | Kind::Borrow | Kind::Typed | Kind::Return | Kind::Duplicates
            );
            assert_eq!(own.may(Some(kind), true).is_ok(), !types, "{kind:?}");
        }
        assert!(other.may(Some(Kind::Hello), true).is_err());
    }
}
