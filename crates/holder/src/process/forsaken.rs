//! Further commands whose asker is gone: it was killed or hung up, and they end as it did.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::holder::Holder;
use crate::linux::proc;
use crate::linux::tree;

/// What a further command gets between TERM and KILL when its asker is gone.
const FORSAKEN_GRACE: Duration = Duration::from_secs(1);

/// A further command that is being ended.
pub(super) struct Forsaken {
    pid: i32,
    /// Its processes when it was asked to end.
    members: Vec<(i32, OwnedFd)>,
    kill_at: Instant,
}

impl Holder {
    /// Asks further commands of somebody who is gone to end. Of one of which it is not known yet whether it runs, it will be heard.
    pub(super) fn forsake(&mut self, peer: u64) {
        while let Some(at) = self.execs.iter().position(|exec| exec.peer == peer && exec.child.is_none()) {
            let pid = self.execs.swap_remove(at).pid;
            let members = members(pid);
            tree::terminate(&members, true);
            self.forsaken.push(Forsaken { pid, members, kill_at: Instant::now() + FORSAKEN_GRACE });
        }
    }

    /// When the next of them has had its time.
    pub(super) fn forsaken_end(&self) -> Option<Instant> {
        self.forsaken.iter().map(|forsaken| forsaken.kill_at).min()
    }

    /// Ends those that did not do so themselves.
    pub(super) fn end_forsaken(&mut self) {
        let now = Instant::now();
        let (due, rest) = std::mem::take(&mut self.forsaken).into_iter().partition(|one| one.kill_at <= now);
        self.forsaken = rest;
        for Forsaken { pid, members: asked, .. } in due {
            let left: Vec<_> = asked.iter().filter(|(_, one)| !proc::ends(one, Duration::ZERO)).collect();
            // While one of them is left, the number is nobody else's.
            let fresh = if left.is_empty() { Vec::new() } else { members(pid) };
            for pidfd in fresh.iter().map(|(_, one)| one).chain(left.iter().map(|(_, one)| one)) {
                let _ = proc::signal(pidfd, libc::SIGKILL);
            }
        }
    }
}

/// The processes of a further command: itself and what descends from it, and what is still in the terminal session that it
/// leads. What has left that on purpose is the session's.
fn members(pid: i32) -> Vec<(i32, OwnedFd)> {
    let below = proc::descendants(pid).unwrap_or_default();
    let ours = proc::descendants(std::process::id() as i32).unwrap_or_default();
    let meant = |(one, start): &(i32, u64)| {
        *one == pid
            || below.contains(&(*one, *start))
            || proc::stat(*one).is_ok_and(|stat| stat.start == *start && stat.session == pid)
    };
    let found = ours.into_iter().filter(meant);
    found.filter_map(|(one, start)| Some((one, tree::open(one, start)?))).collect()
}
