//! A session's processes as somebody else sees them: counted, and ended where nobody holds them any more.

use std::io;
use std::time::{Duration, Instant};

use wharf_model::{Limits, ProcessIdentity, Scope, ScopeKind};

use super::cgroup::{Group, Hierarchies};
use super::proc;
use super::tree::Tree;

/// What processes use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in milliseconds.
    pub cpu: u64,
    /// Resident memory in bytes.
    pub memory: u64,
    /// How many there are.
    pub processes: u32,
}

/// Adds up what the processes below a holder and in a scope use.
pub fn usage(scope: &Scope, holder: &ProcessIdentity) -> io::Result<Usage> {
    let mut pids = Group::reopen(scope).pids();
    if pids.is_empty() {
        pids = proc::descendants(holder.pid)?.into_iter().map(|(pid, _)| pid).collect();
    }
    let mut usage = Usage::default();
    for stat in pids.into_iter().filter_map(|pid| proc::stat(pid).ok()) {
        usage.cpu += stat.ticks * 1000 / rustix::param::clock_ticks_per_second();
        usage.memory += stat.pages * rustix::param::page_size() as u64;
        usage.processes += 1;
    }
    Ok(usage)
}

/// Ends what is left of a session that nobody holds: what is in its cgroup, carries its mark, or descends from its
/// command beyond doubt. Returns how many processes that were; an error when some could not be ended.
pub fn sweep(scope: &Scope, command: &ProcessIdentity, token: &str) -> io::Result<u32> {
    if proc::boot()? != command.boot {
        return Ok(0);
    }
    let mut command = command.clone();
    if !proc::carries(command.pid, token) {
        // A pid and a start time are not enough to end a process that nobody holds.
        command.start = u64::MAX;
    }
    let tree = Tree { group: Group::reopen(scope), foreign: Some((command, token.to_owned())), guest: false };
    let found = tree.members().len() as u32;
    let until = Instant::now() + Duration::from_secs(2);
    while !tree.members().is_empty() {
        if Instant::now() > until {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "some processes of the session cannot be ended",
            ));
        }
        tree.kill();
        std::thread::sleep(Duration::from_millis(5));
    }
    tree.group.remove();
    Ok(found)
}

/// Whether all of a session's processes can be made to stand still here: that takes a cgroup.
pub fn can_freeze() -> bool {
    let name = format!("wharf-probe-{}-still", std::process::id());
    Group::create(&Hierarchies::here(), &name, &Limits::default()).is_ok_and(|group| {
        group.remove();
        matches!(group.scope().kind, ScopeKind::Cgroup1 | ScopeKind::Cgroup2)
    })
}

/// Whether memory, processors and processes can be limited here.
pub fn can_limit() -> bool {
    let limits = Limits { memory: Some(64 << 20), cpus: Some(1.0), pids: Some(64) };
    let name = format!("wharf-probe-{}", std::process::id());
    Group::create(&Hierarchies::here(), &name, &limits).map(|group| group.remove()).is_ok()
}
