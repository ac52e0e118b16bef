mod ground;
mod watches;

use std::fs;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use wharf_model::ProcessIdentity;

use crate::attend::Foreground;

pub(crate) use ground::apart;
pub(crate) use watches::Watches;

/// How far the chain of parents is followed. Real ones are short; this one ends whatever `/proc` says.
const DEEPEST: usize = 1_000;

/// How often the chain is read anew when a link of it ends meanwhile.
const TRIES: usize = 8;

/// The program that stands between the engine's process and a session's.
const HOLDER: &[u8] = b"wharf-holder\n";

/// A process and its ancestors: pid and start time of each, the nearest first. `None` where it is gone, or where
/// its ancestors end faster than they are read.
pub(crate) fn ancestors(pid: i32) -> Option<Vec<(i32, u64)>> {
    let mut unseen = None;
    for _ in 0..TRIES {
        match chain(pid) {
            (chain, None) => return Some(chain),
            (chain, _) if chain.is_empty() => return None,
            // The same again: it is not gone, but hidden from us, and so is what is above it.
            (chain, missing) if missing == unseen => return Some(chain),
            (_, missing) => unseen = missing,
        }
    }
    None
}

/// The chain as far as it can be read, and the process at which it broke off.
fn chain(pid: i32) -> (Vec<(i32, u64)>, Option<i32>) {
    let (mut chain, mut next) = (Vec::new(), pid);
    while next > 0 && chain.len() < DEEPEST {
        let Some((parent, start)) = stat(next) else { return (chain, Some(next)) };
        chain.push((next, start));
        next = parent;
    }
    (chain, (next < 0).then_some(next))
}

/// Who owns the terminal of a session's command.
pub(crate) fn foreground(pid: i32) -> Option<Foreground> {
    let stat = read(&format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; what follows its last bracket does not.
    let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 2..];
    let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
    // Group, session, terminal and the terminal's foreground group: the fields 5 to 8 of proc(5).
    let (group, owner) = (number(2)?, number(5)?);
    (owner > 0).then(|| Foreground { own: group == owner, reads: reads_terminal(owner) })
}

/// Whether a process waits in a read of its standard input.
fn reads_terminal(pid: i32) -> bool {
    let start = if cfg!(target_arch = "aarch64") { "63 0x0 " } else { "0 0x0 " };
    read(&format!("/proc/{pid}/syscall")).is_ok_and(|call| call.starts_with(start.as_bytes()))
}

/// Whether there is a holder between a process and this one: it belongs to a session, known or not.
pub(crate) fn is_held(chain: &[(i32, u64)]) -> bool {
    let own = std::process::id() as i32;
    let below = chain.iter().position(|(pid, _)| *pid == own).map_or(&[][..], |at| &chain[..at]);
    below.iter().any(|(pid, _)| read(&format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == HOLDER))
}

/// One descriptor that nothing else uses: who asks must be known also when all others are taken.
static RESERVE: Mutex<Option<fs::File>> = Mutex::new(None);

/// Sets the reserve aside, while there still is one to set aside.
pub(crate) fn keep_reserve() {
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    if reserve.is_none() {
        *reserve = fs::File::open("/dev/null").ok();
    }
}

fn read(path: &str) -> io::Result<Vec<u8>> {
    let none_left = |error: &io::Error| {
        let left = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
        left.contains(&error.raw_os_error())
    };
    match fs::read(path) {
        Err(error) if none_left(&error) => {
            drop(RESERVE.lock().unwrap_or_else(PoisonError::into_inner).take());
            let again = fs::read(path);
            keep_reserve();
            again
        }
        first => first,
    }
}

/// How long a process has run, by a clock that nobody sets. `None` where the identity is of another boot.
pub(crate) fn run_age(process: &ProcessIdentity) -> Option<Duration> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    if boot.trim() != process.boot {
        return None;
    }
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let up = clock_gettime(ClockId::Boottime);
    let up = Duration::new(u64::try_from(up.tv_sec).ok()?, u32::try_from(up.tv_nsec).ok()?);
    Some(up.saturating_sub(Duration::from_millis(process.start.saturating_mul(1_000) / ticks)))
}

/// A process's parent and start time. The command's name may hold anything, so fields count from the last `)`.
fn stat(pid: i32) -> Option<(i32, u64)> {
    let stat = read(&format!("/proc/{pid}/stat")).ok()?;
    let after = stat.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = String::from_utf8_lossy(stat.get(after..)?).into_owned();
    let mut fields = rest.split(' ');
    // After the name: state (3), parent (4), … start time (22).
    let parent = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some((parent, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_of_parents_ends_at_the_first_process() {
        let me = std::process::id() as i32;
        let chain = ancestors(me).unwrap();
        assert_eq!(chain[0].0, me);
        assert_eq!(chain[1].0, std::os::unix::process::parent_id() as i32);
        assert!(chain[0].1 >= chain[1].1, "a child starts after its parent");
        assert_eq!(ancestors(-1), None);
        assert_eq!(ancestors(i32::MAX), None);
        assert!(!is_held(&chain), "a process does not hold itself");
    }

    #[test]
    fn the_age_of_a_process_needs_its_boot() {
        let me = std::process::id() as i32;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let (_, start) = ancestors(me).unwrap()[0];
        let mut process = ProcessIdentity { pid: me, start, boot: boot.trim().to_owned() };
        assert!(run_age(&process).unwrap() < Duration::from_secs(3_600));
        process.boot = "another".to_owned();
        assert_eq!(run_age(&process), None);
    }
}
