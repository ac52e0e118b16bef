//! Tests a large paste at a slow reader, and the stop of an endless printer.

use std::time::Duration;

use crate::support::{Pty, Wharf, until};
use crate::tools::{holder, memory, show, within};

#[test]
fn a_paste_of_three_megabytes_at_a_slow_reader_arrives_whole() {
    const SIZE: usize = 3 << 20;
    let wharf = Wharf::new();
    let script = format!(
        "stty raw -echo; echo ready; until [ -e go ]; do sleep 0.02; done; head -c {SIZE} > got; echo done; exec cat"
    );
    wharf.start("one", &[], &["sh", "-c", &script]);
    wharf.until_log("one", "ready");
    let mut pty = Pty::spawn(wharf.command(&["attach", "one"]), (80, 24));
    pty.until("attached to one");
    // Not the detach key.
    let bytes: Vec<u8> = (0..SIZE).map(|n| b'a' + (n % 23) as u8).collect();
    for (n, piece) in bytes.chunks(4 << 10).enumerate() {
        pty.type_all(piece);
        if n == 256 {
            within(Duration::from_secs(1), "ls", || wharf.ok(&["ls"]));
            std::fs::write(wharf.home().join("go"), "").unwrap();
        }
    }
    wharf.until_log("one", "done");
    let got = std::fs::read(wharf.home().join("got")).unwrap();
    assert!(got == bytes, "{} of {SIZE} bytes, or others", got.len());
}

#[test]
fn an_endless_printer_is_stopped_at_once() {
    let wharf = Wharf::new();
    wharf.start("one", &["--log-size", "1m"], &["yes"]);
    wharf.start("two", &["--log-size", "1m", "--no-tty"], &["yes"]);
    for name in ["one", "two"] {
        let printed = || {
            let stats = wharf.json(&["stats", name, "--json"]);
            stats.pointer("/0/log_end").and_then(serde_json::Value::as_u64) > Some(20 << 20)
        };
        assert!(until(printed), "{name} does not print");
        within(Duration::from_secs(1), "ls", || wharf.ok(&["ls"]));
        let peak = memory(holder(&wharf, name), "VmHWM:");
        assert!(peak <= 16 << 10, "the holder took {peak} kB");
    }
    for name in ["one", "two"] {
        within(Duration::from_secs(1), "a stop", || wharf.ok(&["stop", "-t", "5", name]));
        assert_eq!(show(&wharf, name)["exit"]["reason"], "stopped");
    }
}
