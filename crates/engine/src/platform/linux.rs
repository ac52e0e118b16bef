use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wharf_model::ProcessIdentity;

/// How far the chain of parents is followed. Real ones are short; this one ends whatever `/proc` says.
const DEEPEST: usize = 1_000;

/// A process and its ancestors: pid and start time of each, the nearest first.
pub(crate) fn ancestors(pid: i32) -> impl Iterator<Item = (i32, u64)> {
    let mut next = pid;
    std::iter::from_fn(move || {
        if next <= 0 {
            return None;
        }
        let pid = next;
        let (parent, start) = stat(pid)?;
        next = parent;
        Some((pid, start))
    })
    .take(DEEPEST)
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
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
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
        let chain: Vec<(i32, u64)> = ancestors(me).collect();
        assert_eq!(chain[0].0, me);
        assert_eq!(chain[1].0, std::os::unix::process::parent_id() as i32);
        assert!(chain[0].1 >= chain[1].1, "a child starts after its parent");
        assert_eq!(ancestors(-1).count(), 0);
    }

    #[test]
    fn the_age_of_a_process_needs_its_boot() {
        let me = std::process::id() as i32;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let (_, start) = ancestors(me).next().unwrap();
        let mut process = ProcessIdentity { pid: me, start, boot: boot.trim().to_owned() };
        assert!(run_age(&process).unwrap() < Duration::from_secs(3_600));
        process.boot = "another".to_owned();
        assert_eq!(run_age(&process), None);
    }
}
