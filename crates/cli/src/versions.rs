//! Asks programs that are installed here which version they are: with a deadline, and not by the daemon.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, waitid};

use crate::signals::Signals;

/// How long a program may take to say it.
const VERSION_TIMEOUT: Duration = Duration::from_secs(2);
/// How much of what it prints is looked at.
const MAX_ANSWER_LEN: usize = 4096;
/// How long a version is that is shown.
const MAX_VERSION_LEN: usize = 40;
/// How often it is looked whether a program that has said it has ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long one wait for its answer lasts.
const READ_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long one that was killed may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_millis(500);

/// Where a program is in a search path. Parts that begin at the current directory count for nothing here: what a
/// project brings along is not run because somebody lists what is installed.
pub(crate) fn installed(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.is_empty() || program.contains('/') {
        return None;
    }
    let places = std::env::split_paths(path).filter(|place| place.is_absolute());
    places
        .map(|place| place.join(program))
        .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

/// What each of these programs says with `--version`, all asked at once; none for one that does not say it.
pub(crate) fn of(programs: &[Option<PathBuf>]) -> Vec<Option<String>> {
    // They are in groups of their own: whoever ends us in the middle of it would leave them.
    let signals = Signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).ok();
    let (leaving, mut ended_by) = (AtomicBool::new(false), None);
    let leave = &leaving;
    let versions = std::thread::scope(|scope| {
        let ask = |program| scope.spawn(move || version(program, leave));
        let asked: Vec<_> = programs.iter().map(|program| program.as_deref().map(ask)).collect();
        while asked.iter().flatten().any(|asked| !asked.is_finished()) {
            if let Some(signal) = signals.as_ref().and_then(|signals| signals.take().first().copied()) {
                leave.store(true, Ordering::Relaxed);
                ended_by = Some(signal);
            }
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
        asked.into_iter().map(|asked| asked?.join().ok().flatten()).collect()
    });
    drop(signals);
    if let Some(signal) = ended_by.and_then(Signal::from_named_raw) {
        // Now it may do what it was sent for.
        let _ = kill_process(getpid(), signal);
    }
    versions
}

fn version(program: &Path, leave: &AtomicBool) -> Option<String> {
    let deadline = Instant::now() + VERSION_TIMEOUT;
    let late = || leave.load(Ordering::Relaxed) || Instant::now() >= deadline;
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Apart from our own, so that all of it can be ended, and none of it reads our terminal.
        .process_group(0)
        .spawn()
        .ok()?;
    let answer = child.stdout.take().map(|out| read(OwnedFd::from(out), late)).unwrap_or_default();
    end(&mut child, late);
    shown(&answer)
}

/// What comes until its end, or until it is late. What comes after the limit is read and forgotten, so that a program that
/// says much can end.
fn read(out: OwnedFd, late: impl Fn() -> bool) -> Vec<u8> {
    let (mut out, mut answer) = (File::from(out), Vec::new());
    let mut piece = [0; 1024];
    while !late() {
        match poll(&mut [PollFd::new(&out, PollFlags::IN)], Some(&READ_TIMEOUT)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => match out.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(got) => {
                    let room = MAX_ANSWER_LEN.saturating_sub(answer.len());
                    answer.extend_from_slice(&piece[..got.min(room)]);
                }
            },
            Err(_) => break,
        }
    }
    answer
}

/// Lets a program end until it is late; then it, and whatever it has started, is ended.
fn end(child: &mut Child, late: impl Fn() -> bool) {
    let Some(pid) = Pid::from_raw(child.id() as i32) else { return };
    let over = || {
        // Looked at and not taken: its number stays its own until its group has been ended.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    };
    while !over() && !late() {
        std::thread::sleep(EXIT_POLL_INTERVAL);
    }
    let _ = kill_process_group(pid, Signal::KILL);
    // One that a dead disk holds does not even take that; it is not waited for.
    let patience = Instant::now() + KILL_TIMEOUT;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < patience {
        std::thread::sleep(EXIT_POLL_INTERVAL);
    }
}

/// The version in an answer: the first word that reads as one, or else all of the first line.
fn shown(answer: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let reads_as_one = |word: &&str| {
        let word = word.strip_prefix('v').unwrap_or(word);
        word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.')
    };
    let edges = |edge: char| matches!(edge, ',' | ';' | '(' | ')' | '"');
    let word = line.split_whitespace().map(|word| word.trim_matches(edges)).find(reads_as_one);
    let found = word.map_or(line, |word| word.strip_prefix('v').unwrap_or(word));
    Some(found.chars().take(MAX_VERSION_LEN).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        for (answer, version) in [
            ("2.1.197 (Claude Code)\n", Some("2.1.197")),
            ("codex-cli 0.42.0\n", Some("0.42.0")),
            ("v22.3.0\n", Some("22.3.0")),
            ("GNU bash, version 5.2.37(1)-release (x86_64)\nCopyright\n", Some("5.2.37(1)-release")),
            ("Docker version 28.1.1, build 4eba377\n", Some("28.1.1")),
            ("\n  built from source\n", Some("built from source")),
            ("", None),
            ("\n\n", None),
        ] {
            assert_eq!(shown(answer.as_bytes()).as_deref(), version, "{answer:?}");
        }
        assert_eq!(shown(&[b'x'; 4096]).unwrap().len(), MAX_VERSION_LEN);
    }

    #[test]
    fn programs_are_asked_at_once_and_none_holds_up_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("left");
        let hangs = format!("sleep 1000 & echo $! > {}; wait", left.display());
        let programs = [
            Some(script(dir.path(), "quick", "echo quick 1.2.3")),
            None,
            Some(script(dir.path(), "hangs", &hangs)),
            Some(script(dir.path(), "deaf", "trap '' TERM INT HUP; while :; do sleep 0.1; done")),
            Some(script(dir.path(), "loud", "echo 4.5.6; yes")),
            Some(dir.path().join("missing")),
        ];
        let begun = Instant::now();
        let versions = of(&programs);
        assert!(begun.elapsed() < VERSION_TIMEOUT * 4, "{:?}", begun.elapsed());
        let expected = [Some("1.2.3"), None, None, None, Some("4.5.6"), None];
        assert_eq!(versions.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        // What it had started went with it.
        let pid: i32 = fs::read_to_string(left).unwrap().trim().parse().unwrap();
        let lives = || {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
        };
        let until = Instant::now() + Duration::from_secs(10);
        while lives() && Instant::now() < until {
            std::thread::sleep(EXIT_POLL_INTERVAL);
        }
        assert!(!lives(), "process {pid} was left");
    }

    #[test]
    fn only_whole_paths_are_searched() {
        let dir = tempfile::tempdir().unwrap();
        let own = script(dir.path(), "tool", "echo 1.0");
        let path = std::env::join_paths([Path::new("."), Path::new(""), dir.path()]).unwrap();
        assert_eq!(installed("tool", &path), Some(own));
        assert_eq!(installed("../tool", &path), None);
        assert_eq!(installed("tool", OsStr::new(".:")), None);
        fs::write(dir.path().join("text"), "").unwrap();
        assert_eq!(installed("text", &path), None, "a file that cannot be run is no program");
    }
}
