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
fn a_timeout_is_124() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    let ran = wharf.run(&["wait", "--timeout", "50ms", "one"]);
    assert_eq!(ran.code, 124, "{ran:#?}");
    assert_eq!(wharf.run(&["wait", "--until", "nonsense", "one"]).code, 2);
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

#[test]
fn a_state_a_line_or_an_event_is_waited_for() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    wharf.ok(&["send", "one", "read -p 'your name: ' x"]);
    let met = wharf.json(&["wait", "one", "--until", "match=name: *$", "--timeout", "20", "--json"]);
    assert_eq!(
        (&met[0]["session"]["name"], met[0]["evidence"].as_str()),
        (&"one".into(), Some("your name:"))
    );
    assert_eq!(wharf.run(&["wait", "one", "--until", "asking", "--timeout", "200ms"]).code, 124);
    let waiting = wharf.command(&["wait", "one", "--until", "event=exit"]).spawn().unwrap();
    assert_eq!(wharf.run(&["wait", "one", "--until", "match=(", "--timeout", "5"]).code, 2);
    wharf.ok(&["kill", "one"]);
    waiting.wait_with_output().unwrap();
    assert_eq!(wharf.run(&["wait", "one", "--until", "exit"]).code, 0, "met, whatever the command's code");
    assert_eq!(wharf.run(&["wait", "one", "--until", "idle"]).code, 4, "it ended before");
}
