//! Tests commands that exit at once, and starts that fail and leave nothing.

use std::process::Command;

use crate::support::{Wharf, until};
use crate::tools::{children, program};

#[test]
fn two_hundred_commands_that_exit_at_once() {
    let wharf = Wharf::new();
    for n in 0..200 {
        let (code, text) = (n % 256, format!("output number {n}"));
        let script = format!("printf '{text}'; exit {code}");
        match n % 3 {
            0 => {
                let ran = wharf.run(&["run", "--attach", "--no-tty", "--", "sh", "-c", &script]);
                assert_eq!((ran.code, ran.out.as_str()), (code, text.as_str()), "{ran:#?}");
            }
            1 => {
                let ran = wharf.run(&["run", "--attach", "--", "sh", "-c", &script]);
                assert_eq!((ran.code, ran.out.as_str()), (code, text.as_str()), "{ran:#?}");
            }
            _ => {
                let name = format!("s{n}");
                wharf.start(&name, &[], &["sh", "-c", &script]);
                assert_eq!(wharf.run(&["wait", &name]).code, code);
                assert_eq!(wharf.log(&name), text.as_bytes());
            }
        }
    }
    // The daemon may hear of the last end a moment after the terminal that showed it.
    let exited = || {
        let sessions = wharf.json(&["ls", "--json"]);
        sessions.as_array().unwrap().iter().filter(|session| session["state"] == "exited").count()
    };
    assert!(until(|| exited() == 200), "{} of 200 are known to have ended", exited());
}

/// What is left of a session that never came to be: nothing.
#[track_caller]
fn nothing_is_left(wharf: &Wharf, spares: usize) {
    for place in ["sessions", "names"] {
        let left: Vec<_> = std::fs::read_dir(wharf.state().join(place)).unwrap().collect();
        assert!(left.is_empty(), "{place} has {left:?}");
    }
    assert_eq!(wharf.json(&["ls", "--json"]), serde_json::json!([]));
    let daemon = wharf.daemon_pid().unwrap();
    let holders = || children(daemon).iter().flat_map(|(nursery, _)| children(*nursery)).count();
    assert!(until(|| holders() == spares), "{} holders, {spares} of them spare", holders());
}

#[test]
fn what_cannot_run_leaves_nothing() {
    let wharf = Wharf::new();
    wharf.start("first", &[], &["true"]);
    wharf.run(&["wait", "first"]);
    wharf.ok(&["rm", "first"]);
    let plain = wharf.home().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    let plain = plain.to_str().unwrap();
    let interpreter = program(&wharf, "interpreter", "#!/nonexistent/interpreter\n");
    let garbage = program(&wharf, "garbage", "\x7fELF nothing of the kind");
    let huge = wharf.home().join("huge");
    std::fs::write(&huge, format!("HUGE={}\n", "x".repeat(200 << 10))).unwrap();
    let huge = huge.to_str().unwrap();
    let home = wharf.home().to_str().unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--", plain], 126, plain),
        (&["--", &interpreter], 126, "/nonexistent/interpreter"),
        (&["--", &garbage], 126, &garbage),
        (&["--", home], 126, home),
        (&["--env-file", huge, "--", "true"], 125, "too long"),
        (&["-w", "/nonexistent/dir", "--", "true"], 125, "/nonexistent/dir"),
        (&["-w", plain, "--", "true"], 125, plain),
        (&["--", "no-such-command"], 127, "no-such-command"),
        (&["--", "/no/such/command"], 127, "/no/such/command"),
    ];
    // Let the spares be there, so that they can be counted.
    let spares = 2;
    for (options, code, named) in cases {
        for tty in ["--tty", "--no-tty"] {
            let ran = wharf.run(&[&["run", "-d", "--name", "one", tty], *options].concat());
            assert_eq!(ran.code, *code, "{options:?}: {ran:#?}");
            assert!(ran.out.is_empty() && ran.err.contains(named), "{options:?}: {ran:#?}");
        }
    }
    nothing_is_left(&wharf, spares);
    // The name is free.
    wharf.start("one", &[], &["true"]);
}

#[test]
fn more_arguments_than_the_system_takes_are_refused() {
    let wharf = Wharf::new();
    // The daemon's own stack decides what a command may get; it is started by this first one.
    wharf.start("first", &[], &["true"]);
    wharf.run(&["wait", "first"]);
    wharf.ok(&["rm", "first"]);
    let word = "x".repeat(100 << 10);
    let plain = wharf.command(&["run", "-d", "--name", "one", "--", "true"]);
    let script = wharf.home().join("many.sh");
    std::fs::write(&script, format!("w={word}\nexec \"$@\" {}\n", "$w ".repeat(30))).unwrap();
    let mut shell = Command::new("prlimit");
    shell
        .args(["--stack=67108864:67108864", "sh"])
        .arg(&script)
        .arg(plain.get_program())
        .args(plain.get_args());
    shell.env_clear();
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let ran: crate::support::Ran = shell.current_dir(wharf.home()).output().unwrap().into();
    assert_eq!(ran.code, 125, "{ran:#?}");
    assert!(ran.err.contains("too long") && ran.err.contains("hint: "), "{ran:#?}");
    nothing_is_left(&wharf, 2);
}
