//! Tests `wharf exec`: terminals, options, and what happens when the caller is killed.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Pty, Wharf, lives, signal, until};

#[test]
fn a_command_runs_in_the_sessions_place() {
    let wharf = Wharf::new();
    wharf.start("one", &["-w", "/tmp", "-e", "A=session"], &["sleep", "1000"]);
    let ran = wharf
        .run_with(&["exec", "one", "--", "sh", "-c", "pwd; echo $A; cat; echo e >&2; exit 9"], b"in\0put");
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (9, "/tmp\nsession\nin\0put", "e\n"),
        "{ran:#?}"
    );
    wharf.ok(&["env", "one", "A=later"]);
    assert_eq!(wharf.ok(&["exec", "one", "--", "sh", "-c", "echo $A"]), "later\n");
    assert_eq!(wharf.run(&["exec", "one", "--", "/nonexistent"]).code, 127);
    assert_eq!(wharf.run(&["exec", "missing", "--", "true"]).code, 3);
}

#[test]
fn on_a_terminal_it_gets_one_of_its_own() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    let script = "stty size; read x; echo \"<$x>\"; exit 4";
    let mut pty = Pty::spawn(wharf.command(&["exec", "one", "--", "sh", "-c", script]), (66, 20));
    pty.until("20 66");
    pty.type_in(b"hello\r");
    pty.until("<hello>");
    assert_eq!(pty.end(), 4);
    assert!(pty.is_cooked());
}

#[test]
fn a_misspelt_option_is_no_command() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    for (args, meant) in [
        (&["run", "--nmae", "two", "--", "true"][..], "--name"),
        (&["run", "-d", "--detahc", "true"], "--detach"),
        (&["exec", "--no-ttyy", "one", "--", "true"], "--no-tty"),
        (&["exec", "one", "--no-ttyy", "--", "true"], "--no-tty"),
    ] {
        let ran = wharf.run(args);
        assert!(ran.code == 2 && ran.err.contains(meant), "{args:?}: {ran:#?}");
    }
    // What follows the command is its own, and what follows the two dashes too.
    assert_eq!(wharf.run(&["exec", "one", "sh", "-c", "exit 5", "--dri"]).code, 5);
    assert_eq!(wharf.run(&["exec", "one", "--", "-no-such-program"]).code, 127);
    wharf.ok(&["run", "-d", "--name", "three", "sh", "-c", "exit 6"]);
    assert_eq!(wharf.run(&["wait", "three"]).code, 6);
}

#[test]
fn a_command_whose_caller_is_killed_ends_with_it() {
    // It names its backends.
    let wharf = Wharf::on_this_host();
    let file = wharf.home().join("pids");
    // The second is an orphan, the third deaf to what can be ignored, and the fourth has left on purpose.
    let script = "echo $$; (sleep 1000 & echo $!); (trap '' TERM HUP INT; sleep 1000 & echo $!); \
        (setsid sh -c 'echo $$; exec sleep 1000' &); sleep 1000";
    for (name, backend) in [("one", "local"), ("pane", "tmux")] {
        wharf.start(name, &["--backend", backend], &["sleep", "1000"]);
        for how in [Signal::TERM, Signal::INT, Signal::KILL] {
            let mut caller = wharf.command(&["exec", "-T", name, "--", "sh", "-c", script]);
            let output = fs::File::create(&file).unwrap();
            let mut caller = caller.stdin(Stdio::null()).stdout(output).spawn().unwrap();
            let pids = || -> Vec<i32> {
                let text = fs::read_to_string(&file).unwrap();
                text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.parse().ok()).collect()
            };
            assert!(until(|| pids().len() == 4), "{:?}", pids());
            let pids = pids();
            assert!(pids.iter().all(|pid| lives(*pid)), "{pids:?}");
            signal(caller.id() as i32, how);
            caller.wait().unwrap();
            assert!(until(|| pids[..3].iter().all(|pid| !lives(*pid))), "{backend}, {how:?}: {pids:?}");
            assert!(lives(pids[3]), "{backend}, {how:?}: what left it on purpose is the session's");
            assert!(crate::support::is_live(&wharf.json(&["show", name, "--json"])));
        }
        wharf.ok(&["kill", name]);
    }
}
