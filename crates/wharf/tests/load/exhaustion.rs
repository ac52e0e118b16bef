//! Tests what happens when descriptors or terminals run out.

use std::process::Command;
use std::time::Duration;

use crate::support::{Ran, Wharf, lives, until};
use crate::tools::{need_mount_namespaces, pid, show, unshared, within};

/// Starts sessions until one is refused, and gives that refusal and how many there are.
fn fill(wharf: &Wharf, most: usize) -> (Ran, usize) {
    for n in 1..=most {
        let name = format!("s{n}");
        let ran = wharf.run(&["run", "-d", "--name", &name, "--", "cat"]);
        if ran.code != 0 {
            return (ran, n - 1);
        }
    }
    panic!("{most} sessions, and nothing is exhausted");
}

/// What must hold when something has run out: said so, with what to change; and the rest goes on.
fn goes_on(wharf: &Wharf, refusal: &Ran, count: usize) {
    assert_eq!(refusal.code, 8, "{refusal:#?}");
    assert!(refusal.err.contains("hint: "), "{refusal:#?}");
    let names = || within(Duration::from_secs(1), "ls", || wharf.ok(&["ls", "-q"]));
    assert_eq!(names().lines().count(), count, "{}", names());
    let sessions = std::fs::read_dir(wharf.state().join("sessions")).unwrap().count();
    assert_eq!(sessions, count, "a refused session has left a directory");
    for n in 1..=count {
        let name = format!("s{n}");
        wharf.ok(&["write", &name, "hello\n"]);
        wharf.until_log(&name, "hello\r\nhello\r\n");
    }
    // One goes, and there is room for another.
    let first = pid(wharf, "s1");
    within(Duration::from_secs(1), "a stop", || wharf.ok(&["stop", "-t", "1", "s1"]));
    assert!(!lives(first));
    wharf.ok(&["rm", "s1"]);
    let again = || wharf.run(&["run", "-d", "--name", "again", "--", "cat"]).code == 0;
    assert!(until(again), "{:#?}", wharf.run(&["run", "-d", "--name", "again", "--", "cat"]));
    assert!(crate::support::is_live(&show(wharf, "again")));
}

#[test]
fn without_descriptors_the_next_is_refused_and_the_rest_go_on() {
    let wharf = Wharf::new();
    let plain = wharf.command(&["run", "-d", "--name", "s0", "--", "cat"]);
    let mut command = Command::new("prlimit");
    command.arg("--nofile=64:64").arg(plain.get_program()).args(plain.get_args()).env_clear();
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let started: Ran = command.current_dir(wharf.home()).output().unwrap().into();
    assert_eq!(started.code, 0, "{started:#?}");
    wharf.ok(&["rm", "-f", "s0"]);
    let (refusal, count) = fill(&wharf, 64);
    eprintln!("64 descriptors are enough for {count} sessions");
    assert!(refusal.err.contains("descriptors"), "{refusal:#?}");
    goes_on(&wharf, &refusal, count);
    // Nobody is lost with the daemon either, and the next one has more.
    wharf.kill_daemon();
    assert_eq!(wharf.ok(&["ls", "-q", "--running"]).lines().count(), count);
}

#[test]
fn without_terminals_the_next_is_refused_and_the_rest_go_on() {
    need_mount_namespaces();
    let wharf = Wharf::new();
    let lines = "mount -t devpts -o newinstance,ptmxmode=0666,mode=620,max=10 devpts /dev/pts\n\
                 mount --bind /dev/pts/ptmx /dev/ptmx";
    let started: Ran =
        unshared(&wharf, lines, &["run", "-d", "--name", "s0", "--", "cat"]).output().unwrap().into();
    assert_eq!(started.code, 0, "{started:#?}");
    wharf.ok(&["rm", "-f", "s0"]);
    let (refusal, count) = fill(&wharf, 30);
    eprintln!("10 terminals are enough for {count} sessions");
    assert!(refusal.err.contains("kernel.pty.max"), "{refusal:#?}");
    // What needs no terminal still starts.
    wharf.start("pipes", &["--no-tty"], &["cat"]);
    wharf.ok(&["rm", "-f", "pipes"]);
    goes_on(&wharf, &refusal, count);
}
