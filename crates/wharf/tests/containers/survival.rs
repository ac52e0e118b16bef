//! A daemon that dies takes no container with it, no byte and no message.

use crate::dock::{Dock, on_both};
use crate::support::{is_live, until};

on_both! {
    a_killed_daemon_loses_nothing
    what_ends_while_nobody_looks_is_known
}

fn a_killed_daemon_loses_nothing(dock: &Dock) {
    let script = "i=0; while :; do echo line $i; i=$((i + 1)); test -e go && break; done; read -r x; echo typed $x $i; exit 5";
    dock.start("long", &["-v", ".", "--no-tty"], &["sh", "-c", script]);
    for round in 0..5 {
        let seen = dock.wharf.log("long").len();
        dock.wharf.kill_daemon();
        assert!(until(|| dock.wharf.log("long").len() > seen), "it prints on without a daemon");
        let shown = || dock.wharf.json(&["show", "long", "--json"]);
        assert!(until(|| is_live(&shown())), "round {round}: {}", shown());
    }
    std::fs::write(dock.wharf.home().join("go"), "").expect("a file");
    dock.ok(&["write", "long", "after all\n"]);
    assert_eq!(dock.run(&["wait", "long"]).code, 5);
    let log = String::from_utf8(dock.wharf.log("long")).expect("UTF-8");
    let mut lines = log.lines();
    let last = lines.next_back().expect("a last line");
    let mut count = 0;
    for (number, line) in lines.enumerate() {
        assert_eq!(line, format!("line {number}"));
        count = number + 1;
    }
    assert_eq!(last, format!("typed after all {count}"));
    dock.must_be_empty();
}

fn what_ends_while_nobody_looks_is_known(dock: &Dock) {
    dock.start(
        "short",
        &["-v", "."],
        &["sh", "-c", "while ! test -e go; do sleep 0.02; done; echo last; exit 9"],
    );
    dock.wharf.kill_daemon();
    std::fs::write(dock.wharf.home().join("go"), "").expect("a file");
    dock.wharf.until_log("short", "last");
    assert_eq!(dock.run(&["wait", "short"]).code, 9);
    dock.ok(&["rm", "short"]);
    dock.must_be_empty();
}
