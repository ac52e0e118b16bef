//! The daemon's own files in every wrong state, and daemons that meet.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::ground::Ground;
use crate::support::{Ran, lives, signal, until};

fn daemon_run(ground: &Ground) -> Child {
    ground
        .command(&["daemon", "run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the daemon runs")
}

#[test]
fn of_daemons_started_at_once_one_wins_and_the_others_say_who() {
    let ground = Ground::new();
    let mut all: Vec<Child> = (0..8).map(|_| daemon_run(&ground)).collect();
    let ended = |child: &mut Child| child.try_wait().expect("a child of ours").is_some();
    assert!(until(|| all.iter_mut().filter_map(|child| ended(child).then_some(())).count() == 7));
    assert!(until(|| ground.daemon_pid().is_some()), "no daemon answers");
    let winner = ground.daemon_pid().expect("one runs");
    assert!(all.iter().any(|child| child.id() as i32 == winner), "{winner} is none of ours");
    for child in all {
        if child.id() as i32 == winner {
            signal(winner, Signal::TERM);
            assert_eq!(Ran::from(child.wait_with_output().expect("it ends")).code, 0);
            continue;
        }
        let ran = Ran::from(child.wait_with_output().expect("it ended"));
        assert_eq!(ran.code, 7, "{ran:#?}");
        assert!(ran.err.contains(&format!("process {winner} owns")), "{winner} is not named: {ran:#?}");
    }
}

#[test]
fn commands_that_start_a_daemon_at_once_get_the_same_one() {
    let ground = Ground::new();
    let all: Vec<Child> = (0..12)
        .map(|_| {
            let mut command = ground.command(&["daemon", "start", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("wharf runs")
        })
        .collect();
    let mut pids = std::collections::BTreeSet::new();
    for child in all {
        let ran = Ran::from(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 0, "{ran:#?}");
        let status: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        pids.insert(status["pid"].as_i64());
    }
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn stale_files_are_in_nobodys_way() {
    let ground = Ground::new();
    fs::create_dir_all(ground.state()).unwrap();
    drop(UnixListener::bind(ground.state().join("daemon.sock")).unwrap());
    for text in [&b"4194303999\n"[..], b"1\n", b"\xff\0garbage without a line", b""] {
        fs::write(ground.state().join("daemon.lock"), text).unwrap();
        let pid = ground.json(&["daemon", "start", "--json"])["pid"].as_i64().unwrap() as i32;
        assert_eq!(ground.locked_by(), Some(pid), "{text:?}");
        // As after a crash: both files stay.
        ground.kill_daemon();
        assert!(ground.state().join("daemon.sock").exists());
    }
    ground.start("one", &[], &["cat"]);
    assert!(ground.runs("one"));
}

#[test]
fn something_in_the_sockets_place_is_named_and_kept() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let pid = ground.pid("one");
    let socket = ground.state().join("daemon.sock");
    for directory in [true, false] {
        ground.ok(&["daemon", "stop"]);
        if directory {
            fs::create_dir(&socket).unwrap();
            fs::write(socket.join("mine"), "mine").unwrap();
        } else {
            fs::write(&socket, "mine").unwrap();
        }
        let ran = ground.run(&["ls"]);
        assert_eq!(ran.code, 7, "{ran:#?}");
        assert!(ran.err.contains("daemon.sock") && ran.err.contains("hint: move "), "{ran:#?}");
        let mine = if directory { socket.join("mine") } else { socket.clone() };
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        // What needs no daemon goes on.
        ground.ok(&["write", "one", "hello\r"]);
        ground.until_log("one", "hello\r\nhello");
        if directory {
            fs::remove_dir_all(&socket).unwrap();
        } else {
            fs::remove_file(&socket).unwrap();
        }
        assert_eq!(ground.pid("one"), pid);
    }
}

#[test]
fn a_socket_that_is_deleted_is_made_again_by_the_same_daemon() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let daemon = ground.daemon_pid();
    for _ in 0..2 {
        fs::remove_file(ground.state().join("daemon.sock")).unwrap();
        // At once, while there is no socket: the command waits for the one that is about to be.
        assert!(ground.runs("one"));
        assert_eq!(ground.daemon_pid(), daemon);
    }
    // Replaced by something else: that is left alone, and the daemon comes back once it is gone.
    let socket = ground.state().join("daemon.sock");
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "mine").unwrap();
    assert_eq!(ground.run(&["ls"]).code, 7);
    assert_eq!(fs::read_to_string(&socket).unwrap(), "mine");
    fs::remove_file(&socket).unwrap();
    assert!(ground.runs("one"));
    assert_eq!(ground.daemon_pid(), daemon);
}

/// The state directory goes while a session runs. `wait` says whether a command comes at once or later.
fn deleted_under_sessions(wait: bool) {
    let ground = Ground::new();
    ground.start("one", &[], &["sleep", "1000"]);
    let (pid, daemon) = (ground.pid("one"), ground.daemon_pid());
    fs::remove_dir_all(ground.state()).unwrap();
    if wait {
        assert!(until(|| ground.state().join("daemon.sock").exists()), "it is not made again");
    }
    ground.start("two", &[], &["cat"]);
    ground.ok(&["write", "two", "hello\r"]);
    ground.until_log("two", "hello\r\nhello");
    // The daemon that knows the first session is still the only one, and can end it.
    let daemons = || ground.processes().into_iter().filter(|pid| is_daemon(*pid)).collect::<Vec<_>>();
    assert!(until(|| daemons().len() == 1 && ground.locked_by() == daemon), "{:?}", daemons());
    assert_eq!(ground.daemon_pid(), daemon);
    let states = ground.states();
    assert_eq!((states.len(), &*states["one"], &*states["two"]), (2, "running", "running"));
    assert_eq!(ground.pid("one"), pid);
    ground.ok(&["kill", "one"]);
    assert!(!lives(pid));
    // Another one is refused as ever.
    let ran = Ran::from(daemon_run(&ground).wait_with_output().unwrap());
    assert_eq!(ran.code, 7, "{ran:#?}");
}

#[test]
fn a_state_directory_that_is_deleted_is_made_again() {
    deleted_under_sessions(true);
}

#[test]
fn a_state_directory_that_is_deleted_is_made_again_for_a_command_that_comes_at_once() {
    deleted_under_sessions(false);
}

fn is_daemon(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"\0daemon\0run\0"))
}

#[test]
fn the_table_of_descriptors_has_its_size_from_the_start() {
    let ground = Ground::new();
    ground.start("first", &[], &["cat"]);
    let daemon = ground.daemon_pid().unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{daemon}/limits")).unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let limit: u64 = limit.split_whitespace().nth(3).unwrap().parse().unwrap_or(u64::MAX);
    let size = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{daemon}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        line.trim().parse().unwrap()
    };
    // To grow it later makes whoever waits for a start wait for the kernel as well.
    let begun = size();
    assert!(begun >= limit.min(16 << 10), "room for {begun} of {limit}");
    for number in 0..20 {
        ground.start(&format!("s{number}"), &[], &["cat"]);
    }
    assert_eq!(size(), begun);
}
