//! What `/proc` says of processes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Every process whose environment has this line, except us: how what a run started is found again.
pub(crate) fn with_environment(line: &OsStr) -> Vec<i32> {
    all().into_iter().filter(|pid| *pid != std::process::id() as i32 && carries(*pid, line)).collect()
}

/// Every process.
fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn carries(pid: i32, line: &OsStr) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == line.as_bytes()))
}

/// The program that a process runs.
pub(crate) fn program(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The command line of a process, for people.
pub(crate) fn command_line(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned()
}

/// Whether a process runs and is not a zombie.
pub(crate) fn lives(pid: i32) -> bool {
    stat(pid).is_ok_and(|fields| fields.first().is_some_and(|state| state != "Z" && state != "X"))
}

/// Kills a process if it still carries that line: a pid that was given to a stranger meanwhile is left alone.
pub(crate) fn kill_if(pid: i32, line: &OsStr) -> Result<bool> {
    let Some(number) = Pid::from_raw(pid) else { return Ok(false) };
    let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else { return Ok(false) };
    if !carries(pid, line) {
        return Ok(false);
    }
    match pidfd_send_signal(handle, Signal::KILL) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot kill {pid}")),
    }
}

/// Processor time of a process with all its threads, in seconds.
pub(crate) fn cpu(pid: i32) -> Result<f64> {
    let fields = stat(pid)?;
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Memory that only this process has, in bytes.
pub(crate) fn private_memory(pid: i32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    Ok(text
        .lines()
        .filter(|line| line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .sum())
}

/// The fields of `/proc/PID/stat` after the name, which may itself have brackets and spaces: state first.
fn stat(pid: i32) -> Result<Vec<String>> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let (_, rest) = text.rsplit_once(')').context("a stat line without a name")?;
    Ok(rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_by_its_environment_and_killed_by_it() {
        let mark = format!("XTASK_TEST_MARK={}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").env(name, value).spawn().unwrap();
        let pid = child.id() as i32;
        assert_eq!(with_environment(OsStr::new(&mark)), [pid]);
        assert!(lives(pid));
        assert_eq!(command_line(pid), "sleep 60");
        assert!(private_memory(pid).unwrap() > 0);
        assert!(cpu(pid).unwrap() < 5.0);
        assert!(!kill_if(pid, OsStr::new("XTASK_TEST_MARK=other")).unwrap(), "somebody else's is left alone");
        assert!(kill_if(pid, OsStr::new(&mark)).unwrap());
        child.wait().unwrap();
        assert!(!lives(pid));
        assert!(!kill_if(pid, OsStr::new(&mark)).unwrap());
    }
}
