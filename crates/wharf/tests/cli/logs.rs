use std::process::Stdio;

use crate::support::{Wharf, until};

#[test]
fn the_log_is_read_with_the_daemon_dead() {
    let wharf = Wharf::new();
    let script = r"printf 'a\0b\377\033[31mred\033[0m\n'; seq 1000";
    wharf.start("one", &["--no-tty"], &["sh", "-c", script]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
    wharf.ok(&["daemon", "stop"]);
    let log = wharf.log("one");
    assert!(log.starts_with(b"a\0b\xff\x1b[31mred\x1b[0m\n1\n2\n"), "{:?}", &log[..40]);
    assert_eq!(wharf.ok(&["logs", "-n", "2", "one"]), "999\n1000\n");
    let offset = (log.len() - 5).to_string();
    assert_eq!(wharf.ok(&["logs", "--from", &offset, "one"]), "1000\n");
    assert!(wharf.run(&["logs", "--plain", "one"]).bytes.starts_with(b"ab\xffred\n1\n"));
    assert_eq!(wharf.daemon_pid(), None, "logs started a daemon");
}

#[test]
fn streams_are_told_apart() {
    let wharf = Wharf::new();
    wharf.start("one", &["--no-tty"], &["sh", "-c", "echo out; echo err >&2"]);
    wharf.run(&["wait", "one"]);
    assert_eq!(wharf.ok(&["logs", "--stdout", "one"]), "out\n");
    assert_eq!(wharf.ok(&["logs", "--stderr", "one"]), "err\n");
}

#[test]
fn an_unknown_name_is_code_3_without_a_daemon() {
    let wharf = Wharf::new();
    for name in ["nothing", "0000000000000000"] {
        let ran = wharf.run(&["logs", name]);
        assert_eq!(ran.code, 3, "{ran:#?}");
        assert!(ran.err.contains("hint: "), "{ran:#?}");
    }
    assert_eq!(wharf.daemon_pid(), None);
}

#[test]
fn following_ends_with_the_session() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "echo first; read x; echo last"]);
    wharf.until_log("one", "first");
    let follower = wharf.command(&["logs", "-f", "one"]).stdout(Stdio::piped()).spawn().unwrap();
    // A daemon that dies meanwhile is none of its business.
    wharf.kill_daemon();
    wharf.ok(&["keys", "one", "Enter"]);
    let output = follower.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(text.starts_with("first") && text.ends_with("last\r\n"), "{text:?}");
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let wharf = Wharf::new();
    wharf.start("one", &["--no-tty"], &["seq", "200000"]);
    wharf.run(&["wait", "one"]);
    let mut command = wharf.command(&["logs", "one"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(until(|| child.try_wait().unwrap().is_some()), "it goes on for nobody");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
