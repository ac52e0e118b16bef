//! A session that says of itself that it is over, while it runs: over is what is seen to be over.

use std::fs;

use crate::ground::Ground;
use crate::support::{is_live, kill, lives, until};

const SCRIPT: &str = "echo ready; while read x; do echo \"<$x>\"; [ \"$x\" = end ] && exit 7; done";
const FORGED: &str = r#"{"code":0,"signal":null,"oom":false,"reason":"exited","started":1,"ended":2}"#;

/// A session that has written its own exit record.
fn forger(ground: &Ground) -> i32 {
    ground.start("one", &[], &["sh", "-c", SCRIPT]);
    ground.until_log("one", "ready");
    let pid = ground.pid("one");
    fs::write(ground.state().join("names/one/exit.json"), FORGED).unwrap();
    pid
}

/// It runs, and its real end is told.
fn goes_on(ground: &Ground, pid: i32) {
    assert!(until(|| is_live(&ground.show("one"))), "{}", ground.show("one"));
    assert_eq!(ground.pid("one"), pid);
    ground.ok(&["write", "one", "end\r"]);
    assert_eq!(ground.run(&["wait", "one"]).code, 7);
    assert_eq!(ground.show("one")["exit"]["code"], 7);
    assert!(until(|| !lives(pid)));
}

#[test]
fn a_record_that_a_live_session_wrote_is_not_believed_by_the_next_daemon() {
    let ground = Ground::new();
    let pid = forger(&ground);
    ground.kill_daemon();
    goes_on(&ground, pid);
}

#[test]
fn a_record_that_a_live_session_wrote_is_not_believed_when_its_holder_dies() {
    let ground = Ground::new();
    let pid = forger(&ground);
    let holder = ground.holder("one");
    kill(holder);
    assert!(until(|| ground.holder("one") != holder), "it was not replaced");
    goes_on(&ground, pid);
}

#[test]
fn a_live_session_with_a_record_of_its_own_can_be_stopped() {
    let ground = Ground::new();
    let pid = forger(&ground);
    ground.kill_daemon();
    ground.ok(&["stop", "-t", "1", "one"]);
    assert!(!lives(pid), "stop says that it is done, and it lives");
    assert_eq!(ground.show("one")["exit"]["reason"], "stopped");
}
