//! A terminal that is attached while our own processes are killed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Welcomes whoever connects, and hangs up. Says how many there were.
fn welcome_and_hang_up(listener: UnixListener) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut hello = [0; 4096];
            if stream.read(&mut hello).is_ok() {
                let welcome = br#"{"role":"holder","features":["exec"]}"#;
                let mut frame = vec![128, 0, 0, 0];
                frame.extend(&hello[4..8]);
                frame.extend((welcome.len() as u32).to_le_bytes());
                frame.extend(welcome);
                let _ = stream.write_all(&frame);
            }
        }
    });
    count
}

#[test]
fn one_who_welcomes_and_hangs_up_is_left_after_some_tries() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let dir = PathBuf::from(ground.show("one")["path"].as_str().unwrap());
    ground.ok(&["daemon", "stop"]);
    // We take the holder's place, in the ticket as well.
    let (ticket, socket) = (dir.join("ticket.json"), dir.join("sock"));
    let before = fs::read(&ticket).unwrap();
    let mut forged: serde_json::Value = serde_json::from_slice(&before).unwrap();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19)).unwrap();
    forged["holder"]["pid"] = std::process::id().into();
    forged["holder"]["start"] = start.parse::<u64>().unwrap().into();
    fs::write(&ticket, forged.to_string()).unwrap();
    fs::rename(&socket, dir.join("sock.real")).unwrap();
    let count = welcome_and_hang_up(UnixListener::bind(&socket).unwrap());
    let mut pty = Pty::spawn(ground.command(&["attach", "one"]), (80, 24));
    pty.until("hangs up as soon as it has answered");
    assert_eq!(pty.end(), 7);
    let attached = count.load(Ordering::SeqCst);
    assert!((2..100).contains(&attached), "it connected {attached} times");
    assert!(pty.is_cooked());
    fs::rename(dir.join("sock.real"), &socket).unwrap();
    fs::write(&ticket, before).unwrap();
    assert_eq!(ground.run(&["write", "one", "hello\r"]).code, 0);
}
