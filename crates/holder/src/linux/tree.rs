//! All processes of one session: found, signalled, ended.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags};
use wharf_model::ProcessIdentity;

use super::cgroup::Group;
use super::{children, proc};

/// The processes of a session. Whoever holds it is their subreaper, or has taken them over from one.
pub(crate) struct Tree {
    pub(crate) group: Group,
    /// Where the processes are not our descendants: the command, and the mark by which its own are known.
    pub(crate) foreign: Option<(ProcessIdentity, String)>,
    /// Whether they are somebody else's: they may be signalled, and are never ended.
    pub(crate) guest: bool,
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
        let Some((command, token)) = &self.foreign else {
            return proc::descendants(std::process::id() as i32).unwrap_or_default();
        };
        let mut kin = Vec::new();
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
        for (pid, pidfd) in &members {
            let _ = proc::signal(pidfd, libc::SIGTERM);
            if tty && proc::prefers_hangup(*pid) {
                let _ = proc::signal(pidfd, libc::SIGHUP);
            }
            // A stopped process would not hear of it.
            let _ = proc::signal(pidfd, libc::SIGCONT);
        }
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

    /// Reaps what has ended: pids and wait statuses.
    pub(crate) fn reap() -> Vec<(i32, i32)> {
        std::iter::from_fn(children::wait_any).collect()
    }

    /// Whether nothing is left. Call [`Tree::reap`] before it.
    pub(crate) fn is_empty(&self) -> bool {
        !children::has_children()
            && (self.guest
                || self.group.pids().is_empty() && (self.foreign.is_none() || self.kin().is_empty()))
    }
}

/// A pidfd of the process that had this pid and start time.
fn open(pid: i32, start: u64) -> Option<OwnedFd> {
    let pidfd = rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    proc::stat(pid).is_ok_and(|stat| stat.start == start).then_some(pidfd)
}
