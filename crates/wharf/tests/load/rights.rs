//! Tests what a command inside a session may do to others, and daemons started there.

use crate::support::{Wharf, until};
use crate::tools::show;

const WHARF_BINARY: &str = env!("CARGO_BIN_EXE_wharf");

#[test]
fn a_command_inside_a_session_ends_no_other_unless_allowed() {
    let wharf = Wharf::new();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    let tries = [
        format!("{WHARF_BINARY} kill --all"),
        format!("setsid -w {WHARF_BINARY} kill --all"),
        format!("sh -c '({WHARF_BINARY} kill --all; echo code $?) & wait'"),
        format!("env -i HOME=$HOME {WHARF_BINARY} stop -t 0 neighbour"),
        format!("{WHARF_BINARY} rm -f neighbour"),
        format!("{WHARF_BINARY} signal neighbour KILL"),
        format!("{WHARF_BINARY} restart neighbour"),
        format!("{WHARF_BINARY} write neighbour x"),
        format!("{WHARF_BINARY} keys neighbour C-c"),
        format!("{WHARF_BINARY} exec neighbour true"),
        format!("{WHARF_BINARY} env neighbour"),
        format!("{WHARF_BINARY} daemon stop"),
    ];
    for (n, line) in tries.iter().enumerate() {
        let name = format!("inside{n}");
        wharf.start(&name, &["--no-tty"], &["sh", "-c", &format!("{line}; echo code $?")]);
        assert_eq!(wharf.run(&["wait", "--timeout", "20", &name]).code, 0);
        let log = String::from_utf8(wharf.log(&name)).unwrap();
        assert!(log.contains("code 5\n"), "{line}: {log}");
        assert!(log.contains("hint: ") && log.contains("--allow-control"), "{line}: {log}");
    }
    let ran = wharf.run(&["exec", "neighbour", WHARF_BINARY, "kill", "--all"]);
    // It is inside `neighbour` and the others are over, so it may: only that session is ended.
    assert!(ran.code != 5, "{ran:#?}");
    wharf.start("other", &[], &["sleep", "1000"]);
    wharf.start("third", &[], &["sleep", "1000"]);
    let ran = wharf.run(&["exec", "third", WHARF_BINARY, "kill", "other"]);
    assert_eq!(ran.code, 5, "{ran:#?}");
    assert!(crate::support::is_live(&show(&wharf, "other")));

    wharf.start(
        "allowed",
        &["--no-tty", "--allow-control"],
        &["sh", "-c", &format!("{WHARF_BINARY} kill other; echo code $?")],
    );
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "allowed"]).code, 0);
    assert!(String::from_utf8(wharf.log("allowed")).unwrap().ends_with("code 0\n"));
    assert_eq!(show(&wharf, "other")["state"], "exited");
    assert!(crate::support::is_live(&show(&wharf, "third")));
}

#[test]
fn a_daemon_started_from_inside_a_session_outlives_it() {
    let wharf = Wharf::new();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    let script = format!("read x; {WHARF_BINARY} ls -q; echo listed; sleep 1000");
    wharf.start("one", &[], &["sh", "-c", &script]);
    let old = wharf.kill_daemon();
    // Straight to the holder: no daemon is started by that.
    wharf.ok(&["write", "one", "\n"]);
    wharf.until_log("one", "listed");
    let daemon = wharf.daemon_pid().expect("the session started one");
    assert_ne!(daemon, old);
    wharf.ok(&["stop", "-t", "1", "one"]);
    assert_eq!(wharf.daemon_pid(), Some(daemon), "the daemon was ended with the session that started it");
    assert!(crate::support::is_live(&show(&wharf, "neighbour")));
    // And it can start sessions that outlive that one.
    wharf.start("two", &[], &["sleep", "1000"]);
    wharf.ok(&["rm", "one"]);
    assert!(until(|| crate::support::is_live(&show(&wharf, "two"))));
    let cgroup = std::fs::read_to_string(format!("/proc/{daemon}/cgroup")).unwrap();
    assert!(!cgroup.contains("wharf-"), "the daemon is in a session's cgroup: {cgroup}");
}
