//! Reads from Linux who owns a terminal and how long a process has run.

mod spread_dirs;
mod waiting;
mod watches;

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wharf_model::ProcessIdentity;

use crate::observe::seen::Foreground;

pub(crate) use spread_dirs::with_spread_dirs;
pub(crate) use watches::Watches;

/// Who owns the terminal of a session's command.
pub(crate) fn foreground(pid: i32) -> Option<Foreground> {
    let (group, owner) = groups(pid)?;
    (owner > 0).then(|| Foreground { own: group == owner, reads: waiting::for_input(owner) })
}

/// The group of a process, and the one that owns its terminal.
fn groups(pid: i32) -> Option<(i32, i32)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; what follows its last bracket does not.
    let rest = stat.get(stat.iter().rposition(|byte| *byte == b')')? + 2..)?;
    let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
    // Group, session, terminal and the terminal's foreground group: the fields 5 to 8 of proc(5).
    Some((number(2)?, number(5)?))
}

fn group_of(pid: i32) -> Option<i32> {
    groups(pid).map(|(group, _)| group)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_process_needs_its_boot() {
        let me = std::process::id() as i32;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let start = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
        let mut process = ProcessIdentity { pid: me, start, boot: boot.trim().to_owned(), namespace: None };
        assert!(run_age(&process).unwrap() < Duration::from_secs(3_600));
        process.boot = "another".to_owned();
        assert_eq!(run_age(&process), None);
    }
}
