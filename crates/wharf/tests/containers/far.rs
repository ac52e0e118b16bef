//! Sessions on an engine of another host, with the whole program: nobody who uses one need know.

use wharf_container::Flavour;

use crate::dock::Dock;
use crate::support::{Pty, is_live, until};

macro_rules! on_both_far {
    ($($case:ident)*) => {
        mod docker { $( #[test] fn $case() { super::$case(&super::Dock::far(super::Flavour::Docker)); } )* }
        mod podman { $( #[test] fn $case() { super::$case(&super::Dock::far(super::Flavour::Podman)); } )* }
    };
}

on_both_far! {
    it_is_used_like_any_other
    a_killed_daemon_loses_nothing_over_there
    what_is_only_here_is_refused
    a_further_command_ends_when_its_caller_is_killed
}

fn a_further_command_ends_when_its_caller_is_killed(dock: &Dock) {
    crate::exec::it_ends_when_its_caller_is_killed(dock);
}

fn it_is_used_like_any_other(dock: &Dock) {
    dock.start("far", &[], &["sh", "-c", "stty -echo; while read -r line; do echo \"<$line>\"; done"]);
    dock.ok(&["write", "far", "one\n"]);
    dock.wharf.until_log("far", "<one>");
    let shown = dock.wharf.json(&["show", "far", "--json"]);
    assert!(shown["environment"].to_string().contains("tcp://127.0.0.1"), "{shown}");
    assert!(shown["pid"].is_null(), "no process of there is one of here: {shown}");
    let ran = dock.run(&["exec", "-T", "far", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (3, "out\n", "err\n"));
    let missing = dock.run(&["exec", "-T", "far", "--", "/no/such/command"]);
    assert_eq!(missing.code, 127, "{missing:?}");
    let mut inner = Pty::spawn(
        dock.command(&["exec", "-t", "far", "--", "sh", "-c", "stty size; read -r x; exit $x"]),
        (101, 33),
    );
    inner.until("33 101");
    inner.type_in(b"7\r");
    assert_eq!(inner.end(), 7);
    let mut attached = Pty::spawn(dock.command(&["attach", "far"]), (90, 30));
    attached.until("<one>");
    attached.type_in(b"two\r");
    attached.until("<two>");
    drop(attached);
    let stats = dock.wharf.json(&["stats", "far", "--json"]);
    assert!(stats.to_string().contains("\"processes\":1"), "{stats}");
    dock.ok(&["stop", "far"]);
    let shown = dock.wharf.json(&["show", "far", "--json"]);
    assert_eq!(shown["exit"]["reason"], "stopped", "{shown}");
    assert_eq!(dock.wharf.log("far").len() as u64, shown["exit"]["log_end"].as_u64().unwrap_or_default());
    dock.must_be_empty();
}

fn a_killed_daemon_loses_nothing_over_there(dock: &Dock) {
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); [ $((i % 500)) != 0 ] || sleep 0.1; done; \
        read -r x; echo typed $x; exit 5";
    dock.start("long", &["--no-tty"], &["sh", "-c", script]);
    for round in 0..3 {
        let seen = dock.wharf.log("long").len();
        dock.wharf.kill_daemon();
        let shown = || dock.wharf.json(&["show", "long", "--json"]);
        assert!(until(|| is_live(&shown())), "round {round}: {}", shown());
        // All of it may be here by now.
        let all = || String::from_utf8_lossy(&dock.wharf.log("long")).contains("line 19999\n");
        assert!(
            until(|| dock.wharf.log("long").len() > seen || all()),
            "round {round}: it is followed again"
        );
    }
    dock.ok(&["write", "long", "after all\n"]);
    assert_eq!(dock.run(&["wait", "long"]).code, 5);
    let log = String::from_utf8(dock.wharf.log("long")).expect("UTF-8");
    let expected: Vec<String> = (0..20_000).map(|i| format!("line {i}")).collect();
    assert!(log == format!("{}\ntyped after all\n", expected.join("\n")), "a byte is missing or doubled");
    dock.must_be_empty();
}

fn what_is_only_here_is_refused(dock: &Dock) {
    let base = ["run", "-d", "--name", "no", "-b", dock.engine_name(), "--image", crate::engine::IMAGE];
    let refused = dock.run(&[&base[..], &["-v", ".", "--", "true"]].concat());
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.err.contains("another host") && refused.err.contains("hint"), "{refused:?}");
    let refused = dock.run(&[&base[..], &["-w", "/no/such/place", "--", "true"]].concat());
    assert!(refused.code != 0 && refused.err.contains("/no/such/place"), "{refused:?}");
    let refused = dock.run(&[&base[..], &["--reuse", "--", "true"]].concat());
    assert_eq!(refused.code, 6, "{refused:?}");
    dock.must_be_empty();
}
