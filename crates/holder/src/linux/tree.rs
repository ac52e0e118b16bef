//! All processes of one session: found, signalled, ended.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags};
use wharf_model::ProcessIdentity;

use super::cgroup::Group;
use super::orphans::Orphans;
use super::{children, proc};

/// The processes of a session. Whoever holds it is their subreaper, or has taken them over from one.
pub(crate) struct Tree {
    pub(crate) group: Group,
    /// Where the processes are not our descendants.
    pub(crate) foreign: Option<Foreign>,
    /// Whether they are somebody else's: they may be signalled, and are never ended.
    pub(crate) guest: bool,
}

/// By what processes are known that another was the parent of.
pub(crate) struct Foreign {
    pub(crate) command: ProcessIdentity,
    /// The mark in their variables.
    pub(crate) token: String,
    /// What the other left without a parent, where somebody took it in.
    pub(crate) orphans: Option<Orphans>,
}

impl Tree {
    /// A pidfd for every process that there is now.
    pub(crate) fn members(&self) -> Vec<(i32, OwnedFd)> {
        let mut members: Vec<(i32, OwnedFd)> =
            self.group.pids().into_iter().filter_map(|pid| Some((pid, self.group.open(pid)?))).collect();
        // A process may have left the group; none leaves its ancestors.
        for (pid, start) in self.kin() {
            if !members.iter().any(|(member, _)| *member == pid) {
                members.extend(open(pid, start).map(|pidfd| (pid, pidfd)));
            }
        }
        members
    }

    fn kin(&self) -> Vec<(i32, u64)> {
        let Some(Foreign { command, token, orphans }) = &self.foreign else {
            return proc::descendants(std::process::id() as i32).unwrap_or_default();
        };
        let mut kin = Vec::new();
        for (pid, start) in orphans.as_ref().map(Orphans::look).unwrap_or_default() {
            if proc::stat(pid).is_ok_and(|stat| stat.start == start && stat.lives()) {
                kin.push((pid, start));
                kin.extend(proc::descendants(pid).unwrap_or_default());
            }
        }
        if proc::stat(command.pid).is_ok_and(|stat| stat.start == command.start && stat.lives()) {
            kin.push((command.pid, command.start));
            kin.extend(proc::descendants(command.pid).unwrap_or_default());
        }
        let marked = proc::pids().unwrap_or_default().into_iter().filter(|pid| proc::carries(*pid, token));
        kin.extend(marked.filter_map(|pid| Some((pid, proc::stat(pid).ok()?.start))));
        kin
    }

    /// Asks every process to end. A shell at a terminal ignores TERM, and takes a hang-up for what it is.
    pub(crate) fn terminate(&self, tty: bool) -> u32 {
        if self.guest {
            return 0;
        }
        let members = self.members();
        terminate(&members, tty);
        members.len() as u32
    }

    /// Sends a signal to every process.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        // All of them, even where one refuses.
        let sent = self.members().into_iter().map(|(_, pidfd)| proc::signal(&pidfd, signal));
        sent.fold(Ok(()), Result::and)
    }

    /// Ends what there is. Call again until [`Tree::is_empty`].
    pub(crate) fn kill(&self) {
        if self.guest {
            return;
        }
        self.group.kill();
        // What forks faster than it is killed is first brought to a halt, a generation a round.
        let mut halted: Vec<(i32, OwnedFd)> = Vec::new();
        for _ in 0..16 {
            let fresh: Vec<(i32, u64)> = self
                .kin()
                .into_iter()
                .filter(|(pid, _)| !halted.iter().any(|(seen, _)| seen == pid))
                .collect();
            if fresh.is_empty() {
                break;
            }
            for (pid, start) in fresh {
                if let Some(pidfd) = open(pid, start) {
                    let _ = proc::signal(&pidfd, libc::SIGSTOP);
                    halted.push((pid, pidfd));
                }
            }
        }
        for (_, pidfd) in &halted {
            let _ = proc::signal(pidfd, libc::SIGKILL);
        }
    }

    /// Whether there may be processes of the session that nobody can find: its holder was killed, and whom it was the parent of
    /// is not known.
    pub(crate) fn is_unsure(&self) -> bool {
        let foreign = self.foreign.as_ref().filter(|_| !self.guest);
        foreign.is_some_and(|foreign| !foreign.orphans.as_ref().is_some_and(Orphans::are_all_known))
    }

    /// Reaps what has ended, and hears what was stopped or goes on: pids and wait statuses.
    pub(crate) fn reap() -> Vec<(i32, i32)> {
        std::iter::from_fn(children::next_change).collect()
    }

    /// Whether nothing is left. Call [`Tree::reap`] before it.
    pub(crate) fn is_empty(&self) -> bool {
        !children::has_children()
            && (self.guest
                || self.group.pids().is_empty() && (self.foreign.is_none() || self.kin().is_empty()))
    }
}

/// Asks processes to end.
pub(crate) fn terminate(members: &[(i32, OwnedFd)], tty: bool) {
    for (pid, pidfd) in members {
        let _ = proc::signal(pidfd, libc::SIGTERM);
        if tty && proc::prefers_hangup(*pid) {
            let _ = proc::signal(pidfd, libc::SIGHUP);
        }
        // A stopped process would not hear of it.
        let _ = proc::signal(pidfd, libc::SIGCONT);
    }
}

/// A pidfd of the process that had this pid and start time.
pub(crate) fn open(pid: i32, start: u64) -> Option<OwnedFd> {
    let pidfd = rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    proc::stat(pid).is_ok_and(|stat| stat.start == start).then_some(pidfd)
}
