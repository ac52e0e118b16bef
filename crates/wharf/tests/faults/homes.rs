//! Homes that are missing, odd, long or read-only.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::ground::Ground;
use crate::support::{Pty, Ran, Wharf};
use crate::tmpfs::{freeze, in_a_namespace};

/// What a session does, from its start to its end.
fn whole_life(ground: &Ground) {
    ground.start("one", &[], &["sh", "-c", "read x; echo \"<$x>\"; exit 6"]);
    let pid = ground.pid("one");
    ground.kill_daemon();
    assert_eq!(ground.pid("one"), pid);
    let mut pty = Pty::spawn(ground.command(&["attach", "one"]), (80, 24));
    pty.until("attached to one");
    pty.type_in(b"hello\r");
    pty.until("<hello>");
    assert_eq!(pty.end(), 6);
    assert_eq!(ground.run(&["wait", "one"]).code, 6);
    ground.ok(&["ls"]);
    let ran = ground.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ground.ok(&["rm", "one"]);
}

fn life_below(name: &OsStr) {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join(name);
    fs::create_dir_all(&home).unwrap();
    whole_life(&Ground::at(&home));
}

#[test]
fn a_home_with_spaces_quotes_and_newlines() {
    life_below(OsStr::new("a b'c\"d\n$(e) *"));
}

#[test]
fn a_home_that_is_not_utf8() {
    life_below(OsStr::from_bytes(b"a\xff\xfeb"));
}

#[test]
fn a_home_that_no_socket_address_holds() {
    life_below(OsStr::new(&format!("{}/{}", "long".repeat(30), "er".repeat(60))));
}

#[test]
fn a_home_that_does_not_exist_is_made() {
    let root = tempfile::tempdir().unwrap();
    let wharf = Wharf::at(&root.path().join("not/there/yet"));
    let mut command = wharf.command(&["run", "-d", "--name", "one", "--", "cat"]);
    let ran = Ran::from(command.current_dir("/").output().unwrap());
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(crate::support::is_live(&wharf.json(&["show", "one", "--json"])));
}

#[test]
fn no_home_is_said_so() {
    let ground = Ground::new();
    let odd: [Option<OsString>; 3] = [None, Some("".into()), Some("relative/home".into())];
    for home in odd {
        for args in
            [&["ls"][..], &["run", "-d", "--", "true"], &["logs", "x"], &["daemon", "status"], &["doctor"]]
        {
            let mut command = ground.command(args);
            match &home {
                None => command.env_remove("HOME"),
                Some(home) => command.env("HOME", home),
            };
            let ran = Ran::from(command.output().unwrap());
            assert_eq!(ran.code, 2, "{home:?} {args:?}: {ran:#?}");
            assert!(ran.err.contains("HOME is not set") && ran.err.contains("hint: "), "{ran:#?}");
        }
    }
    assert_eq!(fs::read_dir(ground.home()).unwrap().count(), 0, "something was made");
    // The XDG variables are enough.
    let mut command = ground.command(&["daemon", "status"]);
    command.env_remove("HOME").env("XDG_STATE_HOME", ground.home()).env("XDG_CONFIG_HOME", ground.home());
    assert_eq!(Ran::from(command.output().unwrap()).code, 3);
}

#[test]
fn two_homes_never_meet() {
    let (left, right) = (Ground::new(), Ground::new());
    left.start("one", &[], &["cat"]);
    right.start("one", &[], &["cat"]);
    assert_ne!(left.daemon_pid(), right.daemon_pid());
    right.ok(&["kill", "--all"]);
    assert!(left.runs("one"));
}

#[test]
fn a_home_that_cannot_be_written() {
    in_a_namespace("homes::a_home_that_cannot_be_written", || {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        freeze(&home);
        refused(&home);
    });
}

#[test]
fn a_home_that_becomes_read_only_under_sessions() {
    in_a_namespace("homes::a_home_that_becomes_read_only_under_sessions", || {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        crate::tmpfs::mount(&home, 8 << 20);
        let ground = Ground::at(&home);
        ground.start("one", &[], &["sh", "-c", "read x; exit 6"]);
        // A file system with files open for writing cannot be made read-only; another path to it can.
        ground.ok(&["daemon", "stop"]);
        freeze(&home);
        let ran = ground.run(&["run", "-d", "--", "true"]);
        assert!(ran.code == 7 || ran.code == 125, "{ran:#?}");
        assert!(ran.err.contains("ead-only") && ran.err.contains("hint: "), "{ran:#?}");
        // What needs no daemon works.
        ground.ok(&["write", "one", "x\r"]);
        std::process::Command::new("umount").arg(&home).status().unwrap();
        assert_eq!(ground.run(&["wait", "one"]).code, 6);
    });
}

fn refused(home: &Path) {
    let ground = Ground::at(home);
    for args in [&["run", "-d", "--", "true"][..], &["ls"]] {
        let ran = ground.run(args);
        assert!(ran.code == 7 || ran.code == 125, "{ran:#?}");
        assert!(ran.err.contains("ead-only") && ran.err.contains("hint: "), "{ran:#?}");
    }
    let doctor = ground.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:#?}");
    assert_eq!(ground.run(&["logs", "one"]).code, 3);
    assert_eq!(ground.run(&["daemon", "status"]).code, 3);
}
