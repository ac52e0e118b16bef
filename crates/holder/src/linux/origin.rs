//! Where a process comes from: the traces that say to which session it belongs.
//!
//! None of them is beyond a process that runs as the same user and means to hide; together they hold for all that does not.
//! From the strongest to the weakest: its ancestors (a holder keeps its orphans), the terminal session that it is in, its
//! cgroup, and the marks that it and its ancestors were started with. One that says inside is enough.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use wharf_model::SessionId;

use super::proc;

/// How many ancestors are followed. Real chains are short; of who hides behind more, nothing is known.
const MAX_ANCESTORS: usize = 512;
/// How many of the nearest are asked for their marks.
const MAX_MARKED: usize = 32;
/// How often the chain is read anew when a link of it ends meanwhile.
const MAX_READ_TRIES: usize = 8;
/// The most that is read of a process's variables, and of anything else of it.
const MAX_VARIABLES_LEN: u64 = 1 << 20;
const MAX_FACTS_LEN: u64 = 16 << 10;
/// The name of the program that stands between a session's processes and the rest.
pub const HOLDER_NAME: &std::ffi::CStr = c"wharf-holder";
/// The variable that says which session a process was started in.
const MARK: &[u8] = b"WHARF_SESSION_ID=";
/// What the name of a session's cgroup begins with.
const GROUP: &str = "wharf-";

/// A process, as a link in the chain of ancestors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Its pid.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// The leader of the terminal session that it is in.
    pub leader: i32,
    /// Whether it is called as a holder is.
    pub holder: bool,
    pub(crate) parent: i32,
}

/// What a process shows of where it comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces {
    /// Itself and its ancestors, the nearest first.
    pub chain: Vec<Link>,
    /// The cgroups of sessions that it is in, the innermost first: the session and the group's name.
    pub groups: Vec<(SessionId, String)>,
    /// The sessions that it and its ancestors were started in by their variables, the nearest first.
    pub marks: Vec<SessionId>,
}

impl Traces {
    /// Reads the traces of a process. The chain ends where `settled` knows an ancestor to be outside of all sessions.
    ///
    /// `None` where nothing can be concluded: the process is gone (whoever has its pid now is another), hides its
    /// variables from its own user, or has ancestors that end faster than they are read.
    pub fn of(pid: i32, pidfd: Option<BorrowedFd<'_>>, settled: impl Fn(i32, u64) -> bool) -> Option<Self> {
        let chain = ancestors(pid, &settled)?;
        let mut marks: Vec<SessionId> = Vec::new();
        for (at, link) in chain.iter().take(MAX_MARKED).enumerate() {
            match read(&format!("/proc/{}/environ", link.pid), MAX_VARIABLES_LEN) {
                Ok(variables) => marks.extend(mark(&variables).filter(|id| !marks.contains(id))),
                // Ancestors may be another user's. What asks is ours, and has no reason to hide.
                Err(_) if at > 0 => {}
                Err(_) => return None,
            }
        }
        let groups = read(&format!("/proc/{pid}/cgroup"), MAX_FACTS_LEN).ok()?;
        Self { chain, groups: grouped(&String::from_utf8_lossy(&groups)), marks }.if_it_lives(pidfd)
    }

    /// The ancestors alone, for places where the rest is not the process's own: in a container.
    pub fn of_kin(pid: i32, pidfd: Option<BorrowedFd<'_>>) -> Option<Self> {
        let chain = ancestors(pid, &|_, _| false)?;
        Self { chain, ..Self::default() }.if_it_lives(pidfd)
    }

    /// Itself, where the process is still there: until now its number may have been given to another.
    fn if_it_lives(self, pidfd: Option<BorrowedFd<'_>>) -> Option<Self> {
        let first = self.chain.first()?;
        let same = match pidfd {
            Some(pidfd) => !proc::ends(pidfd, Duration::ZERO),
            None => link(first.pid).is_some_and(|now| now.start == first.start),
        };
        same.then_some(self)
    }

    /// Whether the chain goes up to one whose parent is outside of what we can see, such as the first process of a container or
    /// one that an engine put into it. Else something on the way is hidden.
    pub fn is_whole(&self) -> bool {
        self.chain.last().is_some_and(|link| link.parent == 0)
    }

    /// Whether a process is this one or one of its ancestors.
    pub fn descends_from(&self, pid: i32, start: u64) -> bool {
        self.chain.iter().any(|link| link.pid == pid && link.start == start)
    }

    /// Whether it, or an ancestor, is in the terminal session that this process leads, or led. The kernel gives a
    /// leader's number to nobody else while there is one left.
    pub fn is_led_by(&self, pid: i32, start: u64) -> bool {
        pid > 0
            && self.chain.iter().any(|link| link.leader == pid)
            && link(pid).is_none_or(|leader| leader.start == start)
    }
}

/// Processes that belong to no session, by pid and start time. None ever comes to belong to one, so what descends from them
/// need not be followed further: a shell that sends ten messages is looked at once.
#[derive(Debug)]
pub struct Outside {
    known: HashSet<(i32, u64)>,
    max_len: usize,
}

impl Outside {
    /// None yet, and never more than that many.
    pub fn new(max_len: usize) -> Self {
        Self { known: HashSet::new(), max_len }
    }

    /// Whether it is known of a process.
    pub fn holds(&self, pid: i32, start: u64) -> bool {
        self.known.contains(&(pid, start))
    }

    /// Keeps the ancestors of one that was found to be outside: itself it asks once, most often; they have more children.
    pub fn remember(&mut self, traces: &Traces) {
        if self.known.len() + traces.chain.len() > self.max_len {
            self.known.clear();
        }
        let ancestors = traces.chain.iter().skip(1).take(self.max_len);
        self.known.extend(ancestors.map(|link| (link.pid, link.start)));
    }
}

/// A process and its ancestors.
fn ancestors(pid: i32, settled: &impl Fn(i32, u64) -> bool) -> Option<Vec<Link>> {
    let mut unseen = None;
    for _ in 0..MAX_READ_TRIES {
        match chain(pid, settled)? {
            (chain, None) => return Some(chain),
            (chain, _) if chain.is_empty() => return None,
            // The same again: it is not gone, but hidden from us, and so is what is above it.
            (chain, missing) if missing == unseen => return Some(chain),
            (_, missing) => unseen = missing,
        }
    }
    None
}

/// The chain as far as it can be read, and the process at which it broke off. `None` where it is too long.
fn chain(pid: i32, settled: &impl Fn(i32, u64) -> bool) -> Option<(Vec<Link>, Option<i32>)> {
    let (mut chain, mut next): (Vec<Link>, i32) = (Vec::new(), pid);
    while next > 0 {
        if chain.len() == MAX_ANCESTORS {
            return None;
        }
        // A parent that is younger than its child has the number of one that is gone.
        let older = |found: &Link| chain.last().is_none_or(|child| found.start <= child.start);
        let Some(found) = link(next).filter(older) else { return Some((chain, Some(next))) };
        if !chain.is_empty() && settled(found.pid, found.start) {
            return Some((chain, None));
        }
        chain.push(found);
        next = found.parent;
    }
    Some((chain, (next < 0).then_some(next)))
}

fn link(pid: i32) -> Option<Link> {
    parse(pid, &read(&format!("/proc/{pid}/stat"), MAX_FACTS_LEN).ok()?)
}

/// The command's name may hold anything: fields count from its last bracket.
fn parse(pid: i32, stat: &[u8]) -> Option<Link> {
    let (open, close) =
        (stat.iter().position(|byte| *byte == b'(')?, stat.iter().rposition(|byte| *byte == b')')?);
    let rest = std::str::from_utf8(stat.get(close + 2..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // After the name: state (3), parent (4), group (5), session (6), … start time (22).
    let parent = fields.nth(1)?.parse().ok()?;
    let leader = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(Link { pid, start, leader, parent, holder: stat.get(open + 1..close)? == HOLDER_NAME.to_bytes() })
}

/// The session that variables name.
fn mark(variables: &[u8]) -> Option<SessionId> {
    let value = variables.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(MARK))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The sessions' groups among those of a process, the innermost first.
fn grouped(groups: &str) -> Vec<(SessionId, String)> {
    let mut found: Vec<(SessionId, String)> = Vec::new();
    for path in groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)) {
        for part in path.rsplit('/') {
            let id = part.strip_prefix(GROUP).and_then(|rest| rest.split('-').next()?.parse().ok());
            if let Some(id) = id
                && !found.iter().any(|(_, name)| name == part)
            {
                found.push((id, part.to_owned()));
            }
        }
    }
    found
}

/// One descriptor that nothing else uses: who asks must be known also when all others are taken.
static RESERVE: Mutex<Option<File>> = Mutex::new(None);

/// Sets the reserve aside, while there still is one to set aside.
pub fn keep_reserve() {
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    if reserve.is_none() {
        *reserve = File::open("/dev/null").ok();
    }
}

fn read(path: &str, most: u64) -> io::Result<Vec<u8>> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        // What a process shows fits, most often, and comes whole with one read. This stands on the path of every connection.
        let mut first = [0_u8; 8 << 10];
        let got = file.read(&mut first)?;
        let mut bytes = first[..got].to_vec();
        if got == first.len() {
            file.take(most - got as u64).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    match read() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            let Some(reserve) = RESERVE.lock().unwrap_or_else(PoisonError::into_inner).take() else {
                return Err(error);
            };
            drop(reserve);
            let again = read();
            keep_reserve();
            again
        }
        first => first,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    fn never(_: i32, _: u64) -> bool {
        false
    }

    #[test]
    fn the_chain_of_parents_ends_at_the_first_process() {
        let me = std::process::id() as i32;
        let traces = Traces::of(me, None, never).unwrap();
        assert_eq!(traces.chain[0].pid, me);
        assert_eq!(traces.chain[1].pid, std::os::unix::process::parent_id() as i32);
        assert!(traces.chain[0].start >= traces.chain[1].start, "a child starts after its parent");
        assert!(traces.descends_from(me, traces.chain[0].start));
        assert!(!traces.descends_from(me, traces.chain[0].start + 1), "a number given to another");
        assert_eq!(Traces::of(-1, None, never), None);
        assert_eq!(Traces::of(i32::MAX, None, never), None);
    }

    #[test]
    fn a_terminal_session_is_known_by_its_leader_and_when_it_began() {
        // The tests' own leader may be gone, or in another namespace; this one is a leader for certain.
        let mut leader = Command::new("setsid").args(["sleep", "60"]).spawn().unwrap();
        let pid = leader.id() as i32;
        let deadline = Instant::now() + Duration::from_secs(60);
        let led = loop {
            let led = link(pid).unwrap();
            if led.leader == pid {
                break led;
            }
            assert!(Instant::now() < deadline, "{led:?}");
            std::thread::yield_now();
        };
        let traces = Traces::of(pid, None, never).unwrap();
        assert!(traces.is_led_by(pid, led.start));
        assert!(!traces.is_led_by(pid, led.start + 1));
        assert!(!traces.is_led_by(0, led.start));
        leader.kill().unwrap();
        leader.wait().unwrap();
        assert!(traces.is_led_by(pid, led.start), "a leader that is gone still led it");
    }

    #[test]
    fn a_chain_ends_at_who_is_known() {
        let me = std::process::id() as i32;
        let parent = std::os::unix::process::parent_id() as i32;
        let traces = Traces::of(me, None, |pid, _| pid == parent).unwrap();
        assert_eq!(traces.chain.len(), 1);
    }

    #[test]
    fn ancestors_that_are_known_to_be_outside_are_not_followed_again_and_are_few() {
        let me = std::process::id() as i32;
        let mut outside = Outside::new(64);
        let traces = Traces::of(me, None, |pid, start| outside.holds(pid, start)).unwrap();
        assert!(traces.chain.len() > 1);
        outside.remember(&traces);
        assert!(!outside.holds(me, traces.chain[0].start), "of itself nothing is remembered");
        assert!(!outside.holds(traces.chain[1].pid, traces.chain[1].start + 1), "a number given to another");
        let again = Traces::of(me, None, |pid, start| outside.holds(pid, start)).unwrap();
        assert_eq!(again.chain, traces.chain[..1]);
        let link = traces.chain[0];
        for pid in 1..1_000 {
            let chain = vec![link, Link { pid, ..link }, Link { pid: -pid, ..link }];
            outside.remember(&Traces { chain, ..Traces::default() });
            assert!(outside.known.len() <= 64 && outside.holds(pid, link.start));
        }
        let endless = vec![link; MAX_ANCESTORS];
        outside.remember(&Traces { chain: endless, ..Traces::default() });
        assert!(outside.known.len() <= 64);
    }

    #[test]
    fn marks_and_groups_are_read_and_what_only_looks_like_them_is_not() {
        let id: SessionId = "0123456789abcdef".parse().unwrap();
        let variables = b"A=1\0XWHARF_SESSION_ID=x\0WHARF_SESSION_ID=0123456789abcdef\0";
        assert_eq!(mark(variables), Some(id.clone()));
        assert_eq!(mark(b"WHARF_SESSION_ID=../../x\0"), None);
        let outer: SessionId = "1123456789abcdef".parse().unwrap();
        let groups =
            "4:freezer:/a/wharf-1123456789abcdef-1-7/wharf-0123456789abcdef-2-9/x\n0::/wharf-probe-1\n";
        assert_eq!(
            grouped(groups),
            [(id, "wharf-0123456789abcdef-2-9".to_owned()), (outer, "wharf-1123456789abcdef-1-7".to_owned())]
        );
    }

    #[test]
    fn a_hostile_name_does_not_confuse_the_fields() {
        let text =
            b"7 (wharf-holder) S 1 (b) R 42 8 9 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 1 0 999 1000 12 18446744073";
        assert_eq!(parse(7, text), Some(Link { pid: 7, start: 999, leader: 9, holder: false, parent: 42 }));
        assert_eq!(parse(7, b"7 (a)"), None);
        assert_eq!(parse(7, b""), None);
    }

    #[test]
    fn a_process_that_is_gone_says_nothing_whoever_has_its_number() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        let pidfd = rustix::process::pidfd_open(
            rustix::process::Pid::from_child(&child),
            rustix::process::PidfdFlags::empty(),
        )
        .unwrap();
        assert!(Traces::of(pid, Some(pidfd.as_fd()), never).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        // Our own pid stands for one that was given away.
        assert_eq!(Traces::of(std::process::id() as i32, Some(pidfd.as_fd()), never), None);
        assert_eq!(Traces::of(pid, None, never), None);
    }
}
