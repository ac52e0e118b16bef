//! Tests that commands inherit no descriptors but their own three.

use std::process::Stdio;

use crate::support::{Pty, Wharf, until};
use crate::tools::{descriptors, holder, pid};

/// Waits until a process has become `sleep`, past the loader with its libraries, and gives what it has open.
#[track_caller]
fn of_sleep(pid: i32) -> Vec<(u32, String)> {
    let is_sleep =
        || std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    assert!(until(|| is_sleep() && descriptors(pid).len() == 3), "{:?}", descriptors(pid));
    descriptors(pid).into_iter().collect()
}

fn read_pid(wharf: &Wharf, file: &str) -> i32 {
    let path = wharf.home().join(file);
    let read = || std::fs::read_to_string(&path).ok()?.trim().parse().ok();
    assert!(until(|| read().is_some()), "{file} was never written");
    read().unwrap()
}

#[test]
fn the_eleventh_session_has_nothing_of_the_ten_before_it() {
    let wharf = Wharf::new();
    for n in 0..10 {
        let options: &[&str] = if n % 2 == 0 { &[] } else { &["--no-tty"] };
        wharf.start(&format!("s{n}"), options, &["cat"]);
    }
    // Somebody looks at one of them, and somebody runs a further command in another.
    let mut viewer = Pty::spawn(wharf.command(&["attach", "s0"]), (80, 24));
    viewer.until("attached to s0");

    wharf.start("tty", &[], &["sleep", "1000"]);
    wharf.start("pipes", &["--no-tty"], &["sleep", "1000"]);
    let terminals: Vec<String> =
        (0..10).step_by(2).map(|n| descriptors(pid(&wharf, &format!("s{n}")))[&0].clone()).collect();
    let open = of_sleep(pid(&wharf, "tty"));
    assert!(open.iter().all(|(_, what)| *what == open[0].1 && what.starts_with("/dev/pts/")), "{open:?}");
    assert!(!terminals.contains(&open[0].1), "{open:?} is of another session: {terminals:?}");
    let open = of_sleep(pid(&wharf, "pipes"));
    assert!(open.iter().all(|(_, what)| what.starts_with("pipe:")), "{open:?}");
    assert!(open[0].1 != open[1].1 && open[1].1 != open[2].1, "{open:?}");
    for session in ["tty", "pipes"] {
        let open = descriptors(holder(&wharf, session));
        let terminals: Vec<_> = open.values().filter(|what| what.contains("ptmx")).collect();
        assert!(terminals.len() <= 1, "the holder of {session} has other sessions' terminals: {open:?}");
    }
}

#[test]
fn further_commands_have_their_own_three_alone() {
    let wharf = Wharf::new();
    for n in 0..3 {
        wharf.start(&format!("s{n}"), &[], &["cat"]);
    }
    let script = |file: &str| format!("echo $$ > {file}; exec sleep 1000");
    let mut piped = wharf
        .command(&["exec", "s0", "sh", "-c", &script("piped")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let open = of_sleep(read_pid(&wharf, "piped"));
    let mine = descriptors(std::process::id() as i32);
    for (number, what) in &open {
        assert!(what.starts_with("pipe:"), "{number} is {what}");
        assert!(mine.values().any(|pipe| pipe == what), "{number} is {what}, which is not the caller's");
    }
    let mut terminal = Pty::spawn(wharf.command(&["exec", "-t", "s1", "sh", "-c", &script("tty")]), (80, 24));
    let open = of_sleep(read_pid(&wharf, "tty"));
    assert!(open.iter().all(|(_, what)| *what == open[0].1 && what.starts_with("/dev/pts/")), "{open:?}");
    let of_session = descriptors(pid(&wharf, "s1"))[&0].clone();
    assert_ne!(open[0].1, of_session, "a further command has its own terminal");
    wharf.ok(&["kill", "--all"]);
    assert!(until(|| piped.try_wait().unwrap().is_some()), "exec outlived the session");
    assert_ne!(terminal.end(), 0);
}
