use std::process::Stdio;

use crate::support::Wharf;

#[test]
fn the_code_is_the_commands() {
    let wharf = Wharf::new();
    wharf.start("seven", &[], &["sh", "-c", "exit 7"]);
    wharf.start("term", &[], &["sh", "-c", "kill -TERM $$"]);
    wharf.start("zero", &[], &["true"]);
    assert_eq!(wharf.run(&["wait", "seven"]).code, 7);
    assert_eq!(wharf.run(&["wait", "term"]).code, 143);
    assert_eq!(wharf.run(&["wait", "zero", "seven", "term"]).code, 7);
    assert_eq!(wharf.run(&["wait", "nothing"]).code, 3);
}

#[test]
fn a_timeout_is_124_and_other_moments_are_unsupported() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    let ran = wharf.run(&["wait", "--timeout", "50ms", "one"]);
    assert_eq!(ran.code, 124, "{ran:#?}");
    assert_eq!(wharf.run(&["wait", "--until", "idle", "one"]).code, 6);
}

#[test]
fn a_daemon_that_dies_meanwhile_is_replaced() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "read x; exit 9"]);
    let waiting = wharf.command(&["wait", "one"]).stdout(Stdio::piped()).spawn().unwrap();
    wharf.kill_daemon();
    wharf.ok(&["keys", "one", "Enter"]);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(9));
}
