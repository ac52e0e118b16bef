//! A terminal that is attached while our own processes are killed.

use crate::ground::Ground;
use crate::support::{Pty, kill, lives, until};

/// Prints numbered lines for as long as there is no file `stop`, then says how many.
const COUNTER: &str = "n=0; while [ ! -e stop ]; do n=$((n+1)); echo \"n $n.\"; sleep 0.01; done; \
                       echo \"last $n.\"; read x; echo \"<$x>\"; exit 5";

/// Every line that the counter printed is there, once and in order.
#[track_caller]
fn whole(shown: &str) {
    let numbers = shown.split("n ").filter_map(|part| part.split('.').next()?.parse::<u32>().ok());
    let numbers: Vec<u32> = numbers.collect();
    let last = shown.split("last ").nth(1).and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    let expected: Vec<u32> = (1..=last.expect("it was told to stop")).collect();
    assert_eq!(numbers, expected, "{shown:?}");
}

fn counting(ground: &Ground) -> Pty {
    ground.start("one", &[], &["sh", "-c", COUNTER]);
    let mut pty = Pty::spawn(ground.command(&["attach", "one"]), (80, 24));
    pty.until("attached to one");
    pty.until("n 10.");
    pty
}

fn finish(ground: &Ground, mut pty: Pty) {
    std::fs::write(ground.home().join("stop"), "").unwrap();
    pty.until("last ");
    pty.type_in(b"bye\r");
    pty.until("<bye>");
    assert_eq!(pty.end(), 5);
    assert!(pty.is_cooked());
    whole(&pty.shown());
    whole(&String::from_utf8(ground.log("one")).unwrap());
    assert_eq!(ground.run(&["wait", "one"]).code, 5);
}

/// The number that was shown last.
fn shown(pty: &Pty) -> u32 {
    pty.shown().rsplit("n ").find_map(|part| part.split('.').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_killed_daemon_does_not_flicker() {
    let ground = Ground::new();
    let mut pty = counting(&ground);
    for _ in 0..3 {
        ground.kill_daemon();
        let next = shown(&pty) + 10;
        pty.until(&format!("n {next}."));
        ground.ok(&["daemon", "start"]);
        let next = shown(&pty) + 10;
        pty.until(&format!("n {next}."));
    }
    finish(&ground, pty);
}

#[test]
fn a_killed_holder_is_reconnected_to() {
    let ground = Ground::new();
    let mut pty = counting(&ground);
    for _ in 0..3 {
        let old = ground.holder("one");
        kill(old);
        assert!(until(|| ground.holder("one") != old && lives(ground.holder("one"))));
        let next = shown(&pty) + 10;
        pty.until(&format!("n {next}."));
    }
    finish(&ground, pty);
}
