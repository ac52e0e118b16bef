//! What `/proc` says of processes.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags};
use wharf_model::ProcessIdentity;

/// A process as `/proc/PID/stat` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its parent.
    pub parent: i32,
    /// The leader of the terminal session that it is in.
    pub session: i32,
    /// Its state's letter: `Z` is a zombie.
    pub state: u8,
    /// Processor time in clock ticks, user and system.
    pub ticks: u64,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Resident memory in pages.
    pub pages: u64,
    /// The wait status of a zombie.
    pub status: i32,
}

impl Stat {
    /// Whether it is more than an entry that waits to be reaped.
    pub fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// This boot's id.
pub fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Reads one process.
pub fn stat(pid: i32) -> io::Result<Stat> {
    // One read into a buffer on the stack: this stands on the path of every start.
    let mut text = [0_u8; 1024];
    let got = io::Read::read(&mut fs::File::open(format!("/proc/{pid}/stat"))?, &mut text)?;
    parse_stat(&text[..got])
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is odd")))
}

/// Bytes that a process and those of its children that were waited for have read from and written to disks. None where we may
/// not look into it.
pub(crate) fn io(pid: i32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((number("read_bytes:")?, number("write_bytes:")?))
}

/// The command's name may hold spaces and parentheses: fields count from the last one.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let after = text.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(text.get(after + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        ticks: number(14)? + number(15)?,
        start: number(22)?,
        pages: number(24)?,
        // Zero where the kernel does not let us see it, as of a living process.
        status: number(52).unwrap_or_default() as i32,
    })
}

/// The wait status of a process that is dead and that nobody has reaped: where it was taken over by an init that
/// reaps late or never, this is the only place that tells.
pub fn unreaped_status(identity: &ProcessIdentity) -> Option<i32> {
    let text = fs::read(format!("/proc/{}/stat", identity.pid)).ok()?;
    parse_stat(&text).filter(|stat| stat.start == identity.start && stat.state == b'Z')?;
    let last = text.trim_ascii_end().rsplit(|byte| *byte == b' ').next()?;
    let status = std::str::from_utf8(last).ok()?.parse().ok()?;
    // It reads 0 to those who may not look into the process, as into one that took another user's rights.
    (status != 0 || is_ours(identity.pid)).then_some(status)
}

/// Whether a process has no user but ours.
fn is_ours(pid: i32) -> bool {
    let own = rustix::process::geteuid().as_raw().to_string();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_ascii_whitespace().all(|id| id == own))
}

/// Who a living process is.
pub fn identity(pid: i32, boot: &str) -> io::Result<ProcessIdentity> {
    Ok(ProcessIdentity { pid, start: stat(pid)?.start, boot: boot.to_owned(), namespace: own_namespace() })
}

/// The number of our own PID namespace. Looked for once: a process never changes it, and those that it forks inherit both.
fn own_namespace() -> Option<u64> {
    static OWN: OnceLock<Option<u64>> = OnceLock::new();
    *OWN.get_or_init(|| namespace("self"))
}

fn namespace(process: &str) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{process}/ns/pid")).ok()?.ino())
}

/// Whether a process is of our own user and our own PID namespace.
pub fn is_kin(pid: i32) -> bool {
    own_namespace().is_some() && namespace(&pid.to_string()) == own_namespace() && is_ours(pid)
}

/// A pidfd of exactly that process: none when it is gone, or when the pid is somebody else's by now. An error where its
/// number says nothing here: it is of another PID namespace, and may live or not.
pub fn open(identity: &ProcessIdentity) -> io::Result<Option<OwnedFd>> {
    if identity.boot != boot()? {
        return Ok(None);
    }
    if identity.namespace.is_some_and(|namespace| own_namespace().is_some_and(|own| own != namespace)) {
        let what =
            format!("process {} is of another PID namespace, and cannot be seen from here", identity.pid);
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    let Some(pid) = Pid::from_raw(identity.pid) else { return Ok(None) };
    let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Looked at after the pidfd was opened: from here on the pid cannot be given to a stranger.
    match stat(identity.pid) {
        Ok(stat) if stat.start == identity.start => Ok(Some(pidfd)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a process has ended, or does so in time.
pub fn ends(pidfd: impl AsFd, within: Duration) -> bool {
    let timeout = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).is_ok_and(|n| n > 0)
}

/// Sends a signal through a pidfd. A process that is gone is no error.
pub fn signal(pidfd: impl AsFd, signal: i32) -> io::Result<()> {
    // SAFETY: plain numbers and a null pointer, which the call allows; the descriptor outlives it.
    let sent = unsafe {
        let fd = pidfd.as_fd().as_raw_fd();
        libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, std::ptr::null::<libc::siginfo_t>(), 0)
    };
    match io::Error::last_os_error() {
        _ if sent == 0 => Ok(()),
        error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        error => Err(error),
    }
}

/// Every pid there is.
pub fn pids() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// All descendants of a process, without itself, each with its start time. A snapshot: what forks meanwhile
/// is found by the next one.
pub fn descendants(root: i32) -> io::Result<Vec<(i32, u64)>> {
    // A thousand sessions that end at once must not each look at every process of the others.
    match children(root) {
        Ok(first) => Ok(downwards(root, first)),
        Err(_) => among_all(root),
    }
}

/// The descendants, found from parent to child.
fn downwards(root: i32, first: Vec<i32>) -> Vec<(i32, u64)> {
    let mut found: Vec<(i32, u64)> = Vec::new();
    let mut waiting: Vec<(i32, Vec<i32>)> = vec![(root, first)];
    while let Some((parent, below)) = waiting.pop() {
        for pid in below {
            // A parent that ended meanwhile left it to the root; any other parent means another process by now.
            let kin = |stat: &Stat| stat.lives() && (stat.parent == parent || stat.parent == root);
            let Some(stat) = stat(pid).ok().filter(kin) else { continue };
            if !found.iter().any(|(other, _)| *other == pid) {
                found.push((pid, stat.start));
                waiting.push((pid, children(pid).unwrap_or_default()));
            }
        }
    }
    found
}

/// The children of all threads of a process. An error where the kernel does not tell.
pub fn children(pid: i32) -> io::Result<Vec<i32>> {
    let mut all = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("children"))?;
        all.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(all)
}

/// The children of a process, whether the kernel has a list of them or not.
pub(crate) fn children_of(parent: i32) -> Vec<i32> {
    children(parent).unwrap_or_else(|_| {
        let all = pids().unwrap_or_default().into_iter();
        all.filter(|pid| stat(*pid).is_ok_and(|stat| stat.parent == parent)).collect()
    })
}

/// The descendants, found by looking at every process that there is.
fn among_all(root: i32) -> io::Result<Vec<(i32, u64)>> {
    // The dead are nobody's descendants: a zombie only waits for its parent to take note.
    let living = |pid| Some((pid, stat(pid).ok().filter(Stat::lives)?));
    let mut rest: Vec<(i32, Stat)> = pids()?.into_iter().filter_map(living).collect();
    let mut found = vec![(root, 0)];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].0;
        rest.retain(|(pid, stat)| {
            let child = stat.parent == parent;
            if child {
                found.push((*pid, stat.start));
            }
            !child
        });
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

/// Whether a process carries this mark in the environment that it was started with.
pub fn carries(pid: i32, token: &str) -> bool {
    let wanted = format!("WHARF_TOKEN={token}");
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|b| *b == 0).any(|var| var == wanted.as_bytes()))
}

/// Whether a process ignores TERM but handles a hang-up, as interactive shells do.
pub fn prefers_hangup(pid: i32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let has = |field: &str, signal: i32| {
        let mask = status.lines().find_map(|line| line.strip_prefix(field));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
    };
    has("SigIgn:", libc::SIGTERM) && has("SigCgt:", libc::SIGHUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_command_name_does_not_confuse_the_fields() {
        let text = b"7 (a) S 1 (b) Z) R 42 7 7 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 1 0 999 1000 12 18446744073709551615";
        let stat = parse_stat(text).unwrap();
        assert_eq!(
            stat,
            Stat { parent: 42, session: 7, state: b'R', ticks: 11, start: 999, pages: 12, status: 0 }
        );
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b"7 (a)"), None);
    }

    #[test]
    fn the_dead_that_nobody_reaped_tell_how_they_ended() {
        for (script, expected) in [("exit 7", 7 << 8), ("kill -9 $$", 9), ("exit 0", 0)] {
            let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
            let who = identity(child.id() as i32, &boot().unwrap()).unwrap();
            let pidfd = open(&who).unwrap().unwrap();
            assert!(ends(&pidfd, Duration::from_secs(30)));
            assert_eq!(unreaped_status(&who), Some(expected), "{script}");
            assert_eq!(unreaped_status(&ProcessIdentity { start: who.start + 1, ..who.clone() }), None);
            child.wait().unwrap();
            assert_eq!(unreaped_status(&who), None);
        }
    }

    #[test]
    fn descendants_are_found_either_way() {
        let script = "(sleep 60 & sleep 60 & echo; wait) & (exec sleep 60) & wait";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // The line comes once the innermost are there.
        io::Read::read_exact(&mut shell.stdout.take().unwrap(), &mut [0]).unwrap();
        let root = shell.id() as i32;
        let sorted = |mut found: Vec<(i32, u64)>| {
            found.sort_unstable();
            found
        };
        let until = std::time::Instant::now() + Duration::from_secs(30);
        let (one, other) = loop {
            let (one, other) = (sorted(descendants(root).unwrap()), sorted(among_all(root).unwrap()));
            if one.len() == 4 || std::time::Instant::now() > until {
                break (one, other);
            }
            std::thread::yield_now();
        };
        for (pid, start) in &one {
            let boot = boot().unwrap();
            let namespace = own_namespace();
            let pidfd =
                open(&ProcessIdentity { pid: *pid, start: *start, boot, namespace }).unwrap().unwrap();
            signal(pidfd, libc::SIGKILL).unwrap();
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(one, other);
        assert_eq!(one.len(), 4);
    }

    #[test]
    fn a_reused_pid_is_not_the_same_process() {
        let boot = boot().unwrap();
        let me = identity(std::process::id() as i32, &boot).unwrap();
        assert!(open(&me).unwrap().is_some());
        assert!(open(&ProcessIdentity { start: me.start + 1, ..me.clone() }).unwrap().is_none());
        assert!(open(&ProcessIdentity { boot: "another".into(), ..me.clone() }).unwrap().is_none());
        assert!(open(&ProcessIdentity { namespace: None, ..me.clone() }).unwrap().is_some());
        let elsewhere = open(&ProcessIdentity { namespace: Some(1), ..me }).unwrap_err();
        assert_eq!(elsewhere.kind(), io::ErrorKind::Unsupported, "{elsewhere}");
    }
}
