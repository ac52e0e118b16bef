//! What the shell has that types the first command of all, and so starts the daemon.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::ground::Ground;
use crate::support::{Ran, until};

/// A shell that does this first, and is then the command.
fn after(ground: &Ground, before: &str, args: &[&str]) -> Ran {
    let plain = ground.command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before}\nexec \"$0\" \"$@\"")]);
    shell.arg(plain.get_program()).args(plain.get_args());
    shell.env_clear().current_dir(ground.home());
    for (name, value) in plain.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell.env("SECRET_OF_THE_FIRST", "hunter2").output().unwrap().into()
}

fn status(pid: i32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().to_owned()
}

/// Signals as bits, without the two that the C library keeps to itself and lets nobody set.
fn signals(pid: i32, field: &str) -> u64 {
    u64::from_str_radix(&status(pid, field), 16).unwrap() & !(0b11 << (32 - 1))
}

/// The soft limit, as /proc has it.
fn soft_limit(pid: i32, what: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn nothing_of_the_first_shell_is_left_in_the_daemon_or_in_later_sessions() {
    let ground = Ground::new();
    let before = "trap '' HUP INT TERM QUIT USR1 XFSZ; umask 027
                  ulimit -S -f 100; ulimit -S -t 600; ulimit -S -n 64; ulimit -S -v 8000000";
    let first =
        ["run", "-d", "-n", "first", "-e", "SECRET_OF_THE_FIRST", "--", "sh", "-c", "umask; exec cat"];
    let ran = after(&ground, before, &first);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let daemon = ground.daemon_pid().unwrap();
    let environment = fs::read(format!("/proc/{daemon}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("hunter2"), "the daemon has the secret");
    assert_eq!(status(daemon, "Umask"), "0077");

    let second = "umask; head -c 1000000 /dev/zero >large && echo whole; exec cat";
    let ran = after(&ground, "umask 002", &["run", "-d", "-n", "second", "--", "sh", "-c", second]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ground.until_log("second", "whole");
    ground.until_log("second", "0002");
    ground.until_log("first", "0027");
    let sessions = [ground.pid("first"), ground.pid("second")];
    for pid in sessions {
        assert_eq!(signals(pid, "SigIgn"), 0, "{pid} ignores something");
        assert_eq!(signals(pid, "SigBlk"), 0, "{pid} blocks something");
    }
    let xfsz_and_pipe = (1 << (25 - 1)) | (1 << (13 - 1));
    assert_eq!(signals(daemon, "SigIgn") & !xfsz_and_pipe, 0);
    for pid in sessions.into_iter().chain([daemon]) {
        assert_eq!(soft_limit(pid, "Max file size"), "unlimited", "{pid}");
        assert_eq!(soft_limit(pid, "Max cpu time"), "unlimited", "{pid}");
        assert_eq!(soft_limit(pid, "Max address space"), "unlimited", "{pid}");
        assert!(soft_limit(pid, "Max open files").parse::<u64>().unwrap() >= 1_024, "{pid}");
    }
    // The session has what its own caller passed on, and only that one.
    let of = |name: &str| ground.json(&["env", name, "--json"]).to_string();
    assert!(of("first").contains("hunter2"));
}

#[test]
fn a_daemon_that_is_started_from_inside_a_session_has_nothing_of_it() {
    let ground = Ground::new();
    let program = env!("CARGO_BIN_EXE_wharf");
    let inner = format!(
        "read go; trap '' HUP USR1; umask 027; ulimit -S -f 100; export SECRET=hunter2; \
         {program} ls >/dev/null && echo done; exec cat"
    );
    ground.start("one", &[], &["sh", "-c", &inner]);
    ground.ok(&["daemon", "stop"]);
    ground.ok(&["write", "one", "go\r"]);
    ground.until_log("one", "done");
    let daemon = ground.daemon_pid().unwrap();
    assert!(
        !String::from_utf8_lossy(&fs::read(format!("/proc/{daemon}/environ")).unwrap()).contains("hunter2")
    );
    assert_eq!(status(daemon, "Umask"), "0077");
    assert_eq!(soft_limit(daemon, "Max file size"), "unlimited");
    let xfsz_and_pipe = (1 << (25 - 1)) | (1 << (13 - 1));
    assert_eq!(signals(daemon, "SigIgn") & !xfsz_and_pipe, 0);
}

#[test]
fn a_hard_limit_is_refused_or_named_everywhere() {
    let ground = Ground::new();
    // Enough for our own files.
    let limited = "ulimit -f 40000";
    let ran = after(&ground, limited, &["run", "-d", "-n", "one", "--", "cat"]);
    assert!(
        ran.code != 0 && ran.err.contains("ulimit -Hf") && ran.err.contains("--inherit-limits"),
        "{ran:#?}"
    );
    let ran = after(&ground, "ulimit -t 1000", &["ls"]);
    assert!(ran.code != 0 && ran.err.contains("ulimit -Ht"), "{ran:#?}");

    let ran = after(&ground, limited, &["daemon", "start", "--inherit-limits"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ran = ground.run(&[
        "run",
        "-d",
        "-n",
        "large",
        "--",
        "sh",
        "-c",
        "exec head -c 100000000 /dev/zero >large",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "large\n"), "{ran:#?}");
    assert!(ran.err.contains("a hard limit of 20480000 bytes on the size of a file"), "{ran:#?}");
    assert!(until(|| !ground.show("large")["exit"].is_null()), "it ends");
    let exit: Value = ground.show("large")["exit"].clone();
    assert_eq!(exit["signal"], 25, "{exit}");
    assert_eq!(exit["limit"], "the limit of 20480000 bytes on the size of a file (ulimit -f)", "{exit}");
    let looked = ground.run(&["doctor"]);
    assert!(looked.code == 1 && looked.out.contains("ulimit -Hf"), "{looked:#?}");

    // Also without a word of the command line.
    ground.ok(&["daemon", "stop"]);
    let ran = after(&ground, "ulimit -f 40000; export WHARF_INHERIT_LIMITS=1", &["ls"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}
