//! A session's processes as somebody else sees them: counted, and ended where nobody holds them any more.

use std::io;
use std::time::{Duration, Instant};

use wharf_model::{DiskUse, Limits, ProcessIdentity, Scope, ScopeKind};

use super::cgroup::{Group, Hierarchies};
use super::orphans::Orphans;
use super::proc;
use super::tree::{Foreign, Tree};

/// What processes use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in milliseconds.
    pub cpu: u64,
    /// Resident memory in bytes.
    pub memory: u64,
    /// How many there are.
    pub processes: u32,
    /// Bytes from and to disks, those of children that have ended included; none where that cannot be read.
    pub io: Option<DiskUse>,
}

/// Adds up what the processes below a holder and in a scope use.
pub fn usage(scope: &Scope, holder: &ProcessIdentity) -> io::Result<Usage> {
    let mut pids = Group::reopen(scope).pids();
    if pids.is_empty() {
        pids = proc::descendants(holder.pid)?.into_iter().map(|(pid, _)| pid).collect();
    }
    let mut usage = Usage::default();
    for (pid, stat) in pids.into_iter().filter_map(|pid| Some((pid, proc::stat(pid).ok()?))) {
        if let Some((read, written)) = proc::io(pid) {
            let io = usage.io.get_or_insert_default();
            *io = DiskUse { read: io.read.saturating_add(read), written: io.written.saturating_add(written) };
        }
        usage.cpu += stat.ticks * 1000 / rustix::param::clock_ticks_per_second();
        usage.memory += stat.pages * rustix::param::page_size() as u64;
        usage.processes += 1;
    }
    Ok(usage)
}

/// Ends what is left of a session that nobody holds: what is in its cgroup, carries its mark, or descends from its
/// command or is an orphan of its holder beyond doubt. Returns how many processes that were; an error when some could not be ended.
pub fn sweep(
    scope: &Scope,
    command: &ProcessIdentity,
    token: &str,
    orphans: Option<Orphans>,
) -> io::Result<u32> {
    let Some(tree) = left(scope, command, token, orphans)? else { return Ok(0) };
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

/// What [`sweep`] would end: pids.
pub fn strays(
    scope: &Scope,
    command: &ProcessIdentity,
    token: &str,
    orphans: Option<Orphans>,
) -> io::Result<Vec<i32>> {
    let tree = left(scope, command, token, orphans)?;
    Ok(tree.map(|tree| tree.members()).unwrap_or_default().into_iter().map(|(pid, _)| pid).collect())
}

/// What is left of a session that nobody holds; nothing can be after a boot.
fn left(
    scope: &Scope,
    command: &ProcessIdentity,
    token: &str,
    orphans: Option<Orphans>,
) -> io::Result<Option<Tree>> {
    if proc::boot()? != command.boot {
        return Ok(None);
    }
    let mut command = command.clone();
    if !proc::carries(command.pid, token) {
        // A pid and a start time are not enough to end a process that nobody holds.
        command.start = u64::MAX;
    }
    let foreign = Foreign { command, token: token.to_owned(), orphans };
    Ok(Some(Tree { group: Group::reopen(scope), foreign: Some(foreign), guest: false }))
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
