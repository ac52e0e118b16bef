//! Whether a process waits for input from its terminal, by the system call that it is in.

use std::fs::{self, File};
use std::ops::Not;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The calls that wait for input, by their numbers.
#[cfg(target_arch = "x86_64")]
mod calls {
    pub(super) const READ: &[u64] = &[0];
    pub(super) const POLL: &[u64] = &[7];
    pub(super) const PPOLL: &[u64] = &[271];
    pub(super) const SELECT: &[u64] = &[23, 270];
    pub(super) const EPOLL: &[u64] = &[232, 281, 441];
    pub(super) const WAIT: &[u64] = &[61, 247];
}
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    pub(super) const READ: &[u64] = &[63];
    pub(super) const POLL: &[u64] = &[];
    pub(super) const PPOLL: &[u64] = &[73];
    pub(super) const SELECT: &[u64] = &[72];
    pub(super) const EPOLL: &[u64] = &[22, 441];
    pub(super) const WAIT: &[u64] = &[260, 95];
}

/// How many descriptors of a `poll` are looked at.
const MAX_POLLED: u64 = 64;
/// The bit of a `pollfd` that asks for input.
const POLL_IN: u16 = 1;

/// How many generations, and how many processes of each, are looked at where one waits for the other.
const MAX_DEPTH: usize = 4;
const MAX_CHILDREN: usize = 16;

/// What a process waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Its standard input, for as long as it takes.
    Input,
    /// A time, or many things: it may draw or work meanwhile, or rest.
    Perhaps,
    /// The end of a process that it has started.
    Child,
    /// Something else, or nothing.
    Other,
}

/// Whether a process group waits for input: its first process, or one that this waits for. `None` where that cannot be seen.
pub(super) fn for_input(group: i32) -> Option<bool> {
    among(group, group, 0)
}

fn among(pid: i32, group: i32, depth: usize) -> Option<bool> {
    match waits(pid)? {
        Waits::Input => Some(true),
        Waits::Perhaps => None,
        Waits::Child if depth < MAX_DEPTH => {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            let children = children.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
            let theirs = children.take(MAX_CHILDREN).filter(|pid| super::group_of(*pid) == Some(group));
            let seen: Vec<Option<bool>> = theirs.map(|pid| among(pid, group, depth + 1)).collect();
            if seen.contains(&Some(true)) { Some(true) } else { seen.contains(&None).not().then_some(false) }
        }
        Waits::Child | Waits::Other => Some(false),
    }
}

/// What a process waits for; `None` where nobody lets us see that.
fn waits(pid: i32) -> Option<Waits> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut words = call.split_ascii_whitespace();
    // A process that runs says so, and is in no call.
    let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else {
        return Some(Waits::Other);
    };
    let arguments: Vec<u64> =
        words.filter_map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect();
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(u64::MAX);
    let surely = if calls::READ.contains(&number) {
        return Some(if is_input(pid, argument(0)) { Waits::Input } else { Waits::Other });
    } else if calls::SELECT.contains(&number) {
        let (highest, set, until) = (argument(0), argument(1), argument(4));
        let mut first = [0; 8];
        // A bit for each descriptor, the lowest for the first; those of higher ones are not looked at.
        let asked = |set: [u8; 8]| {
            let set = u64::from_ne_bytes(set);
            (0..highest.min(64)).any(|descriptor| set >> descriptor & 1 == 1 && is_input(pid, descriptor))
        };
        until == 0 && read_memory(pid, set, &mut first) && asked(first)
    } else if calls::POLL.contains(&number) || calls::PPOLL.contains(&number) {
        let (set, count, until) = (argument(0), argument(1).min(MAX_POLLED), argument(2));
        // The one has no end where it is negative, the other where there is none.
        let is_negative = |int: u64| int & 1 << 31 != 0;
        let endless = if calls::PPOLL.contains(&number) { until == 0 } else { is_negative(until) };
        endless && polls_input(pid, set, count)
    } else if calls::EPOLL.contains(&number) {
        false
    } else {
        return Some(if calls::WAIT.contains(&number) { Waits::Child } else { Waits::Other });
    };
    Some(if surely { Waits::Input } else { Waits::Perhaps })
}

/// Whether input is among what a `poll` waits for.
fn polls_input(pid: i32, set: u64, count: u64) -> bool {
    let mut polled = vec![0; usize::try_from(count).unwrap_or(0) * 8];
    read_memory(pid, set, &mut polled)
        && polled.chunks_exact(8).any(|one| {
            let descriptor = u32::from_ne_bytes([one[0], one[1], one[2], one[3]]);
            let events = u16::from_ne_bytes([one[4], one[5]]);
            events & POLL_IN != 0 && is_input(pid, descriptor.into())
        })
}

/// Whether a descriptor is where input comes from: the first, or any terminal. Some shells read a duplicate.
fn is_input(pid: i32, descriptor: u64) -> bool {
    let is_terminal = |path: &Path| path.starts_with("/dev/pts") || path == Path::new("/dev/tty");
    descriptor == 0
        || fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).is_ok_and(|path| is_terminal(&path))
}

fn read_memory(pid: i32, at: u64, into: &mut [u8]) -> bool {
    at != 0
        && File::open(format!("/proc/{pid}/mem")).is_ok_and(|memory| memory.read_exact_at(into, at).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Programs that say by their name that they are there, and then wait for something. They start side by side.
    fn started(programs: &[(Option<bool>, &str)]) -> Vec<Child> {
        let start = |(_, program): &(Option<bool>, &str)| {
            let before = "import os, pty, select, time; open('/proc/self/comm', 'w').write('waits')";
            let mut command = Command::new("python3");
            command.args(["-c", &format!("{before}; {program}")]);
            // In a group of its own, as a shell would start it, with an input that stays open.
            command.stdin(Stdio::piped()).process_group(0).spawn().unwrap()
        };
        programs.iter().map(start).collect()
    }

    #[test]
    fn a_program_that_waits_for_its_input_is_told_from_one_that_waits_for_more() {
        let programs = [
            (Some(true), "os.read(0, 1)"),
            (Some(true), "select.select([0], [], [])"),
            (Some(true), "p = select.poll(); p.register(0, select.POLLIN); p.poll()"),
            (Some(true), "r, w = os.pipe(); p = select.poll(); p.register(r); p.register(0); p.poll()"),
            (Some(true), "m, s = pty.openpty(); os.read(s, 1)"),
            (Some(true), "m, s = pty.openpty(); select.select([s], [], [])"),
            (Some(true), "os.wait() if os.fork() else os.read(0, 1)"),
            (Some(false), "os.wait() if os.fork() else (os.setpgid(0, 0), os.read(0, 1))"),
            (Some(false), "time.sleep(600)"),
            (Some(false), "r, w = os.pipe(); os.read(r, 1)"),
            (None, "select.select([0], [], [], 600)"),
            (None, "r, w = os.pipe(); select.select([r], [], [])"),
            (None, "p = select.epoll(); p.register(0); p.poll()"),
        ];
        let mut children = started(&programs);
        let deadline = Instant::now() + Duration::from_secs(90);
        let seen = |pid: i32| {
            let named = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "waits\n");
            (named, for_input(pid))
        };
        let mut wrong = Vec::new();
        for ((wanted, program), child) in programs.iter().zip(&mut children) {
            let pid = i32::try_from(child.id()).unwrap();
            while seen(pid) != (true, *wanted) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            let last = seen(pid);
            if last != (true, *wanted) {
                wrong.push(format!("{last:?}: {program}"));
            }
            // The child that left the group ends with its input, which is its parent's.
            let group = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
