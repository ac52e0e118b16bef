//! Tests that large and odd output reaches the log byte for byte.

use std::process::{Command, Stdio};

use crate::support::{Wharf, until};
use crate::tools::{holder, memory, show};

#[test]
fn a_quarter_of_a_gigabyte_without_a_newline() {
    const TOTAL: u64 = 256 << 20;
    let wharf = Wharf::new();
    for (name, options) in [("tty", &["--log-size", "1m"][..]), ("pipes", &["--log-size", "1m", "--no-tty"])]
    {
        let script = format!("head -c {TOTAL} /dev/zero | tr '\\0' x; read x; exit 4");
        wharf.start(name, options, &["sh", "-c", &script]);
        let end = || wharf.json(&["stats", name, "--json"]);
        let printed =
            || end().pointer("/0/log_end").or(end().get("log_end")).and_then(serde_json::Value::as_u64);
        assert!(until(|| printed() == Some(TOTAL)), "{}", end());
        let peak = memory(holder(&wharf, name), "VmHWM:");
        eprintln!("{name}: the holder's peak is {peak} kB");
        assert!(peak <= 32 << 10, "the holder took {peak} kB");
        wharf.ok(&["write", name, "\n"]);
        assert_eq!(wharf.run(&["wait", name]).code, 4);
        // On a terminal the last line is echoed.
        let total = show(&wharf, name)["exit"]["log_end"].as_u64().unwrap();
        assert_eq!(total, if name == "tty" { TOTAL + 2 } else { TOTAL });
        let logs = wharf.run(&["logs", name]);
        let kept = logs.bytes.len() as u64;
        let gap: u64 = logs.err.split(' ').find_map(|word| word.parse().ok()).expect("the gap is told");
        assert_eq!(gap + kept, total, "{}", logs.err);
        assert!((512 << 10..4 << 20).contains(&kept), "{kept} bytes are kept of a megabyte");
        assert!(logs.bytes.iter().take(kept as usize - 2).all(|b| *b == b'x'));
        // An offset is a place for ever: what it names does not move.
        let from = (total - 100).to_string();
        assert_eq!(wharf.run(&["logs", "--from", &from, name]).bytes.len(), 100);
    }
}

#[test]
fn every_byte_comes_out_as_it_went_in() {
    let wharf = Wharf::new();
    let mut bytes: Vec<u8> = (0..=255).cycle().take(256 * 40).collect();
    bytes.extend_from_slice(
        b"\xff\xfe\0\0\xc3\x28\xe2\x82\x9b\x9c\x90\x85\x1b]52;c;Zm9v\x07\x1bPq\x1b\\\xed\xa0\x80",
    );
    // Broken at every place where a reader's buffer may end.
    bytes.extend((0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8));
    std::fs::write(wharf.home().join("bytes"), &bytes).unwrap();
    wharf.start("pipes", &["--no-tty"], &["cat", "bytes"]);
    wharf.start("tty", &[], &["sh", "-c", "stty raw -opost; exec cat bytes"]);
    for name in ["pipes", "tty"] {
        assert_eq!(wharf.run(&["wait", name]).code, 0);
        let log = wharf.log(name);
        assert!(log == bytes, "{name}: {} bytes of {}", log.len(), bytes.len());
    }
    // A listing and a page of it are clean, whatever the command is called.
    wharf.start("evil", &[], &["sh", "-c", "true", "\x1b]0;title\x07\x1b[2J"]);
    let shown = wharf.ok(&["ls"]) + &wharf.ok(&["show", "evil"]);
    assert!(!shown.contains('\x1b') && !shown.contains('\x07'), "{shown:?}");
}

#[test]
fn a_reader_that_has_enough_ends_the_pipeline_quietly() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "while :; do echo line; done"]);
    wharf.until_log("one", "line");
    for options in ["", "-f", "--timestamps", "-n 5 -f"] {
        let line = format!("{{ \"$0\" logs {options} one; echo code $? >&2; }} | head -n 3");
        let plain = wharf.command(&[]);
        let mut command = Command::new("bash");
        command.args(["-c", &line]).arg(plain.get_program()).env_clear().stdin(Stdio::null());
        command.env("HOME", wharf.home()).env("PATH", std::env::var_os("PATH").unwrap());
        let output = command.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(out.lines().count(), 3, "{options}: {out} {err}");
        // What was taken away before it was read is told; nothing else is.
        let told: Vec<&str> = err.lines().filter(|line| !line.contains("bytes are gone")).collect();
        assert_eq!(told, ["code 0"], "{options}: {err}");
    }
}

#[test]
fn what_goes_to_the_terminal_itself_is_in_the_log() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "echo direct > /dev/tty; echo plain; (echo below > /dev/tty)"]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
    assert_eq!(wharf.log("one"), b"direct\r\nplain\r\nbelow\r\n");
    // Without a terminal there is none to write to, and ours is not lent.
    wharf.start("two", &["--no-tty"], &["sh", "-c", "(echo direct > /dev/tty) 2>/dev/null; echo code $?"]);
    wharf.run(&["wait", "two"]);
    let log = String::from_utf8(wharf.log("two")).unwrap();
    assert!(log.starts_with("code ") && log != "code 0\n", "{log}");
}

#[test]
fn a_command_that_closes_its_output_goes_on_and_its_end_is_told() {
    let wharf = Wharf::new();
    for (name, options) in [("tty", &[][..]), ("pipes", &["--no-tty"])] {
        let script = "echo before; exec >&- 2>&-; until [ -e go ]; do sleep 0.02; done; exit 9";
        let _ = std::fs::remove_file(wharf.home().join("go"));
        wharf.start(name, options, &["sh", "-c", script]);
        wharf.until_log(name, "before");
        assert!(crate::support::is_live(&show(&wharf, name)));
        // The holder does not spin on what is closed.
        let pid = holder(&wharf, name);
        let ticks = || -> u64 {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_ascii_whitespace().collect();
            fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
        };
        let before = ticks();
        let begun = std::time::Instant::now();
        assert!(until(|| begun.elapsed() > std::time::Duration::from_millis(300)));
        assert!(ticks() - before <= 5, "the holder of {name} spins");
        std::fs::write(wharf.home().join("go"), "").unwrap();
        assert_eq!(wharf.run(&["wait", "--timeout", "20", name]).code, 9);
    }
}
