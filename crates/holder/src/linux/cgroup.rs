//! A cgroup per session, where the host lets us: it finds every process, limits them, and ends them at once.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags};
use wharf_model::{Code, Failure, Limits, Scope, ScopeKind, Text};

use super::proc;

/// The cgroups that this process is in, as directories. Read once, in the nursery.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hierarchies {
    v2: Option<PathBuf>,
    v1: Vec<(String, PathBuf)>,
    /// Whether nothing but one session and its holder is in them, as in a container.
    own: bool,
}

/// How old an empty group must be to count as left behind: a start puts its command into one at once.
const MIN_ABANDONED_AGE: Duration = Duration::from_secs(60);

/// The cgroups of one session. The default one is none at all.
#[derive(Default)]
pub(crate) struct Group {
    v2: Option<(PathBuf, OwnedFd)>,
    v1: Vec<(String, PathBuf)>,
    /// The groups around it that hold nothing else: what happens in them happens to the session.
    around: Vec<PathBuf>,
}

impl Hierarchies {
    /// Where we are, in a place that is the session's alone.
    pub(crate) fn own() -> Self {
        Self { own: true, ..Self::here() }
    }

    /// Whether they are the session's alone.
    pub(crate) fn are_own(&self) -> bool {
        self.own
    }

    /// Where we are. What cannot be read is not there.
    pub(crate) fn here() -> Self {
        let mine = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::parse(&mine, &mounts)
    }

    fn parse(mine: &str, mounts: &str) -> Self {
        let mut found = Self::default();
        for line in mounts.lines() {
            // 30 23 0:26 ROOT MOUNTPOINT options - TYPE source SUPEROPTIONS
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let (left, right): (Vec<&str>, Vec<&str>) =
                (left.split(' ').collect(), right.split(' ').collect());
            let (Some(root), Some(point), Some(kind)) = (left.get(3), left.get(4), right.first()) else {
                continue;
            };
            let inside = |path: &str| {
                let below = Path::new(path).strip_prefix(root).ok()?;
                Some(Path::new(point).join(below))
            };
            let mut entries = mine.lines().filter_map(|line| {
                let mut parts = line.splitn(3, ':');
                Some((parts.next()?, parts.next()?, parts.next()?))
            });
            match *kind {
                "cgroup2" if found.v2.is_none() => {
                    found.v2 = entries
                        .find(|(id, names, _)| *id == "0" && names.is_empty())
                        .and_then(|e| inside(e.2));
                }
                "cgroup" => {
                    let options = right.get(2).copied().unwrap_or_default();
                    for (_, names, path) in entries {
                        for name in names.split(',').filter(|name| options.split(',').any(|o| o == *name)) {
                            found.v1.extend(inside(path).map(|dir| (name.to_owned(), dir)));
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Takes away what sessions left behind whose holders were killed: groups of ours that have been empty for a while.
    pub(crate) fn tidy(&self) {
        let parents = self.v2.iter().chain(self.v1.iter().map(|(_, dir)| dir));
        for entry in parents.filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten() {
            let ours = entry.file_name().as_encoded_bytes().starts_with(b"wharf-");
            let age = entry.metadata().ok().and_then(|meta| meta.modified().ok()?.elapsed().ok());
            if ours && age.is_some_and(|age| age > MIN_ABANDONED_AGE) {
                // It fails where there is a process in it.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }

    fn v1(&self, controller: &str) -> Option<&Path> {
        self.v1.iter().find(|(name, _)| name == controller).map(|(_, dir)| dir.as_path())
    }
}

impl Group {
    /// Makes a group of that name below our own, with the limits in force. Without limits it never fails: where
    /// nothing can be made, the group is none.
    pub(crate) fn create(here: &Hierarchies, name: &str, limits: &Limits) -> Result<Self, Failure> {
        let mut group = Self::default();
        if here.own {
            group.around = here.v2.iter().chain(here.v1.iter().map(|(_, dir)| dir)).cloned().collect();
        }
        if let Some(parent) = &here.v2 {
            let dir = parent.join(name);
            if make(&dir) {
                group.v2 = open_dir(&dir).ok().map(|fd| (dir, fd));
            }
        }
        if group.v2.is_none() {
            group.make_v1(here, name, "freezer");
        }
        for (controller, wanted) in [
            ("memory", limits.memory.is_some()),
            ("cpu", limits.cpus.is_some()),
            ("pids", limits.pids.is_some()),
        ] {
            if wanted && !group.limit(here, name, controller, limits) {
                group.remove();
                return Err(Failure::new(
                    Code::LimitRefused,
                    format!("nothing here can enforce a {controller} limit: no cgroup with that controller can be made"),
                )
                .hint("run without it, or start the daemon where cgroups with that controller can be made"));
            }
        }
        Ok(group)
    }

    /// Puts one limit in force, by version 2 where its controller is there, else by version 1.
    fn limit(&mut self, here: &Hierarchies, name: &str, controller: &str, limits: &Limits) -> bool {
        if let Some((dir, _)) = &self.v2 {
            let has = |dir: &Path| {
                let controllers = fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
                controllers.split_ascii_whitespace().any(|c| c == controller)
            };
            // Handed down by the parent or not at all: it has processes, ours among them, and a parent that has
            // both processes and controllers to hand down is no legal one.
            if has(dir) {
                return match controller {
                    "memory" => write(dir, "memory.max", limits.memory).is_ok_and(|()| {
                        let _ = fs::write(dir.join("memory.swap.max"), "0");
                        true
                    }),
                    "pids" => write(dir, "pids.max", limits.pids).is_ok(),
                    _ => write(dir, "cpu.max", limits.cpus.map(|cpus| format!("{} 100000", quota(cpus))))
                        .is_ok(),
                };
            }
        }
        self.make_v1(here, name, controller);
        let Some((_, dir)) = self.v1.iter().find(|(made, _)| made == controller) else { return false };
        match controller {
            "memory" => write(dir, "memory.limit_in_bytes", limits.memory).is_ok_and(|()| {
                let _ = write(dir, "memory.memsw.limit_in_bytes", limits.memory);
                true
            }),
            "pids" => write(dir, "pids.max", limits.pids).is_ok(),
            _ => {
                write(dir, "cpu.cfs_period_us", Some(100_000)).is_ok()
                    && write(dir, "cpu.cfs_quota_us", limits.cpus.map(quota)).is_ok()
            }
        }
    }

    fn make_v1(&mut self, here: &Hierarchies, name: &str, controller: &str) {
        if let Some(parent) = here.v1(controller) {
            let dir = parent.join(name);
            if make(&dir) {
                self.v1.push((controller.to_owned(), dir));
            }
        }
    }

    /// The group of a session that another holder made.
    pub(crate) fn reopen(scope: &Scope) -> Self {
        let mut group = Self::default();
        for dir in scope.dirs.iter().map(Text::as_path).filter(|dir| dir.join("cgroup.procs").exists()) {
            if dir.join("cgroup.events").exists() {
                group.v2 = open_dir(dir).ok().map(|fd| (dir.to_owned(), fd));
            } else {
                let controller = ["freezer", "memory", "pids", "cpu"];
                let name =
                    controller.into_iter().find(|c| dir.components().any(|part| part.as_os_str() == *c));
                group.v1.push((name.unwrap_or_default().to_owned(), dir.to_owned()));
            }
        }
        group
    }

    /// What to be born into.
    pub(crate) fn birthplace(&self) -> Option<RawFd> {
        self.v2.as_ref().map(|(_, fd)| fd.as_raw_fd())
    }

    /// Takes a process that waits at its gate into the version 1 groups.
    pub(crate) fn join(&self, pid: i32) -> io::Result<()> {
        self.v1.iter().try_for_each(|(_, dir)| fs::write(dir.join("cgroup.procs"), pid.to_string()))
    }

    /// For the ticket.
    pub(crate) fn scope(&self) -> Scope {
        let freezer = self.v1.iter().any(|(controller, _)| controller == "freezer");
        let kind = match (&self.v2, freezer) {
            (Some(_), _) => ScopeKind::Cgroup2,
            (None, true) => ScopeKind::Cgroup1,
            (None, false) => ScopeKind::Walk,
        };
        Scope { kind, dirs: self.dirs().map(Text::from).collect() }
    }

    fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.v2.iter().map(|(dir, _)| dir.as_path()).chain(self.v1.iter().map(|(_, dir)| dir.as_path()))
    }

    /// The directory that holds every process of the session, where there is one.
    fn whole(&self) -> Option<&Path> {
        self.dirs().next()
    }

    /// Its processes.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let list = self
            .whole()
            .and_then(|dir| fs::read_to_string(dir.join("cgroup.procs")).ok())
            .unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
    }

    /// A pidfd of a process that is beyond doubt in the group.
    pub(crate) fn open(&self, pid: i32) -> Option<OwnedFd> {
        let dir = self.whole()?.file_name()?.to_str()?;
        let pidfd = rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        groups.lines().any(|line| line.split('/').any(|part| part == dir)).then_some(pidfd)
    }

    /// Ends every process in it, forks in progress included. Call again until it is empty.
    pub(crate) fn kill(&self) {
        let Some(dir) = self.whole() else { return };
        if fs::write(dir.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        let (file, hold, go) = match self.v2 {
            Some(_) => ("cgroup.freeze", "1", "0"),
            None => ("freezer.state", "FROZEN", "THAWED"),
        };
        let _ = fs::write(dir.join(file), hold);
        for pidfd in self.pids().into_iter().filter_map(|pid| self.open(pid)) {
            let _ = proc::signal(pidfd.as_fd(), libc::SIGKILL);
        }
        let _ = fs::write(dir.join(file), go);
    }

    /// The directories that count kills for want of memory.
    pub(crate) fn memory_dirs(&self) -> Vec<PathBuf> {
        let counts =
            |dir: &&Path| dir.join("memory.events").exists() || dir.join("memory.oom_control").exists();
        let dirs = self.dirs().chain(self.around.iter().map(PathBuf::as_path));
        dirs.filter(counts).map(Path::to_owned).collect()
    }

    /// How often the kernel killed for want of memory in it.
    pub(crate) fn oom_kills(&self) -> u64 {
        let count = |path: PathBuf| {
            let text = fs::read_to_string(path).ok()?;
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
        };
        self.dirs()
            .chain(self.around.iter().map(PathBuf::as_path))
            .filter_map(|dir| {
                count(dir.join("memory.events")).or_else(|| count(dir.join("memory.oom_control")))
            })
            // A group around another counts what happens in that one too.
            .max()
            .unwrap_or_default()
    }

    /// Takes the directories away; they must be empty.
    pub(crate) fn remove(&self) {
        for dir in self.dirs() {
            remove(dir);
        }
    }
}

/// Makes a directory, or takes an empty one that was left behind.
fn make(dir: &Path) -> bool {
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::read(dir.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty())
        }
        made => made.is_ok(),
    }
}

/// Takes a group away with those that the session made in it.
fn remove(dir: &Path) {
    if fs::remove_dir(dir).is_err() {
        for inner in fs::read_dir(dir).into_iter().flatten().flatten() {
            if inner.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&inner.path());
            }
        }
        let _ = fs::remove_dir(dir);
    }
}

fn quota(cpus: f64) -> u64 {
    ((cpus * 100_000.0) as u64).max(1_000)
}

fn write(dir: &Path, file: &str, value: Option<impl ToString>) -> io::Result<()> {
    let value = value.map(|v| v.to_string()).ok_or(io::ErrorKind::InvalidInput)?;
    fs::write(dir.join(file), value)
}

fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_beside_each_other() {
        let mine = "9:name=systemd:/\n8:pids:/jail\n4:memory:/jail/deep\n0::/u\n";
        let mounts = "\
            30 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            31 1 0:27 /jail /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            32 1 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = Hierarchies::parse(mine, mounts);
        assert_eq!(found.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/unified/u")));
        assert_eq!(found.v1("pids"), Some(Path::new("/sys/fs/cgroup/pids")));
        assert_eq!(found.v1("memory"), Some(Path::new("/sys/fs/cgroup/memory/jail/deep")));
        assert_eq!(found.v1("freezer"), None);
    }
}
