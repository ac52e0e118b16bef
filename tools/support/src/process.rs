//! What `/proc` says of processes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often what a run left is killed before it is given up, and the time that it has to go each time.
const MAX_KILL_ROUNDS: usize = 50;
const KILL_PAUSE: Duration = Duration::from_millis(20);

/// How what a run started is found again: a line of its environment, or, where a program clears that, the
/// directory of the run, in which its standard error goes to a file.
pub struct Mark {
    /// The line of the environment.
    pub line: OsString,
    /// The directory of the run.
    pub dir: Option<PathBuf>,
}

impl Mark {
    fn is_on(&self, pid: i32) -> bool {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == self.line.as_bytes())
            || self.dir.as_ref().is_some_and(|dir| {
                fs::read_link(format!("/proc/{pid}/fd/2")).is_ok_and(|target| target.starts_with(dir))
            })
    }

    /// Every process that carries it, except us.
    pub fn carriers(&self) -> Vec<i32> {
        all().into_iter().filter(|pid| *pid != std::process::id() as i32 && self.is_on(*pid)).collect()
    }

    /// Kills every process that carries it, and those that these start meanwhile.
    pub fn kill_carriers(&self) {
        for _ in 0..MAX_KILL_ROUNDS {
            let left = self.carriers();
            if left.is_empty() {
                return;
            }
            for pid in left {
                drop(kill_if(pid, self));
            }
            std::thread::sleep(KILL_PAUSE);
        }
    }
}

/// Every process.
fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Every process but us that has this text in its environment, its command line or its directory's path.
pub fn mentioning(text: &OsStr) -> Vec<i32> {
    let own = std::process::id() as i32;
    all().into_iter().filter(|pid| *pid != own && lives(*pid) && mentions(*pid, text)).collect()
}

fn mentions(pid: i32, text: &OsStr) -> bool {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let file = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let dir = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    has(&file("environ")) || has(&file("cmdline")) || has(dir.as_os_str().as_bytes())
}

/// Kills a process if it still mentions that text.
pub fn kill_if_mentioning(pid: i32, text: &OsStr) {
    let Some(number) = Pid::from_raw(pid) else { return };
    let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else { return };
    if mentions(pid, text) {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}

/// Every process that a process started, and those that they did, at any depth.
pub fn descendants(of: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = all().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Every process of that name.
pub fn named(name: &str) -> Vec<i32> {
    let is =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name);
    all().into_iter().filter(is).collect()
}

/// Its parent.
pub fn parent(pid: i32) -> Option<i32> {
    stat(pid).ok()?.get(1)?.parse().ok()
}

/// Whether a process has the outer side of that terminal open.
pub fn has_terminal(pid: i32, number: &str) -> bool {
    let wanted = format!("tty-index:\t{number}");
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    entries.flatten().any(|entry| {
        fs::read_to_string(entry.path()).is_ok_and(|text| text.lines().any(|line| line == wanted))
    })
}

/// The program that a process runs.
pub fn program(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The command line of a process, for people.
pub fn command_line(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned()
}

/// Whether a process runs and is not a zombie.
pub fn lives(pid: i32) -> bool {
    stat(pid).is_ok_and(|fields| fields.first().is_some_and(|state| state != "Z" && state != "X"))
}

/// Kills a process if it still carries that mark: a pid that was given to a stranger meanwhile is left alone.
pub fn kill_if(pid: i32, mark: &Mark) -> Result<bool> {
    let Some(number) = Pid::from_raw(pid) else { return Ok(false) };
    let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else { return Ok(false) };
    if !mark.is_on(pid) {
        return Ok(false);
    }
    match pidfd_send_signal(handle, Signal::KILL) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot kill {pid}")),
    }
}

/// Processor time of a process with all its threads, in seconds.
pub fn cpu(pid: i32) -> Result<f64> {
    // In nanoseconds, thread by thread, where the kernel counts that; else in clock ticks.
    let path = format!("/proc/{pid}/task");
    let mut nanoseconds = 0_u64;
    for thread in fs::read_dir(&path).with_context(|| path.clone())?.flatten() {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        nanoseconds +=
            text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    if nanoseconds > 0 {
        return Ok(nanoseconds as f64 / 1e9);
    }
    let fields = stat(pid)?;
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Memory that only this process has, in bytes.
pub fn private_memory(pid: i32) -> Result<u64> {
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
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_and_its_child_are_descendants() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let own = std::process::id() as i32;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while descendants(child.id() as i32).is_empty() {
            assert!(std::time::Instant::now() < deadline, "the shell never started anything");
            std::thread::yield_now();
        }
        let grandchild = descendants(child.id() as i32)[0];
        let found = descendants(own);
        assert!(found.contains(&(child.id() as i32)) && found.contains(&grandchild), "{found:?}");
        let pid = Pid::from_raw(grandchild).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_child_is_found_by_its_mark_and_killed_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let value = dir.path().display().to_string();
        let mark = Mark { line: format!("XTASK_TEST={value}").into(), dir: Some(dir.path().to_owned()) };
        let mut child = Command::new("sleep").arg("60").env("XTASK_TEST", &value).spawn().unwrap();
        let errors = std::fs::File::create(dir.path().join("errors")).unwrap();
        let mut other = Command::new("sleep").arg("61").env_clear().stderr(errors).spawn().unwrap();
        let pid = child.id() as i32;
        let mut expected = [pid, other.id() as i32];
        expected.sort_unstable();
        // `spawn` returns while the kernel still builds the new program: its environment reads as empty until then.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let mut found = mark.carriers();
            found.sort_unstable();
            if found == expected {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{found:?} are not {expected:?}");
            std::thread::yield_now();
        }
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(lives(pid));
        assert_eq!(command_line(pid), "sleep 60");
        assert!(private_memory(pid).unwrap() > 0);
        assert!(cpu(pid).unwrap() < 5.0);
        let other = Mark { line: "XTASK_TEST=other".into(), dir: None };
        assert!(!kill_if(pid, &other).unwrap(), "somebody else's is left alone");
        assert!(kill_if(pid, &mark).unwrap());
        child.wait().unwrap();
        assert!(!lives(pid));
        assert!(!kill_if(pid, &mark).unwrap());
    }
}
