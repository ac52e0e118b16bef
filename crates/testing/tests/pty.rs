//! The agents that misbehave do so, in a real terminal.
#![expect(clippy::unwrap_used, reason = "tests, and what only tests call")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

struct Fake {
    child: Child,
    terminal: File,
    shown: Arc<Mutex<Vec<u8>>>,
    log: PathBuf,
    _dir: tempfile::TempDir,
}

impl Fake {
    fn start(mode: &str, more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || -> OwnedFd {
            let path = name.to_str().unwrap();
            File::options().read(true).write(true).open(path).unwrap().into()
        };
        let child = Command::new(env!("CARGO_BIN_EXE_wharf-fake-agent"))
            .arg(mode)
            .arg("--log")
            .arg(&log)
            .args(["--work", "50"])
            .args(more)
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        let terminal = File::from(master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, into) = (terminal.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            // The other end of a terminal that is gone is an error.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                into.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, terminal, shown, log, _dir: dir }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            assert!(Instant::now() < deadline, "no {what}:\n{:?}\n{:?}", self.log(), self.shown());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    fn until_shown(&self, text: &str) {
        self.until(text, |fake| fake.shown().contains(text));
    }

    #[track_caller]
    fn until_logged(&self, line: &Value) {
        self.until(&line.to_string(), |fake| fake.log().contains(line));
    }

    fn write(&mut self, bytes: &[u8]) {
        self.terminal.write_all(bytes).unwrap();
    }

    /// Pastes, waits until it is drawn, then submits.
    fn send(&mut self, text: &str) {
        self.write(format!("\x1b[200~{text}\x1b[201~").as_bytes());
        let last: String = text.chars().skip(text.chars().count().saturating_sub(4)).collect();
        self.until_shown(&last);
        self.write(b"\r");
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PASTE_MODE_ON: &str = "\x1b[?2004h";

#[test]
fn plain_gets_what_was_sent_and_says_so() {
    let mut fake = Fake::start("plain", &[]);
    fake.until_shown("> ");
    fake.send("one\ntwo ü");
    fake.until_logged(&json!({ "n": 1, "text": "one\ntwo ü" }));
    fake.until_shown(r#"GOT 1: "one\ntwo ü""#);
    fake.until_shown("working…");
    fake.until_shown("done");
    assert!(fake.shown().contains(PASTE_MODE_ON));
}

#[test]
fn slow_start_drops_what_comes_too_early() {
    let mut fake = Fake::start("slow-start", &["--delay", "300"]);
    fake.write(b"lost\r");
    fake.until_shown(PASTE_MODE_ON);
    fake.send("kept");
    fake.until_logged(&json!({ "n": 1, "text": "kept" }));
    assert!(fake.log().iter().any(|line| line["event"] == "dropped"));
}

#[test]
fn swallow_takes_a_quick_enter_for_a_line_break() {
    let mut fake = Fake::start("swallow", &[]);
    fake.until_shown(PASTE_MODE_ON);
    fake.write(b"\x1b[200~text\x1b[201~\r");
    fake.until_logged(&json!({ "event": "swallowed" }));
    std::thread::sleep(Duration::from_millis(150));
    fake.write(b"\r");
    fake.until_logged(&json!({ "n": 1, "text": "text\n" }));
}

#[test]
fn the_first_enter_is_dropped_and_the_text_stays() {
    let mut fake = Fake::start("swallow-first-enter", &[]);
    fake.until_shown(PASTE_MODE_ON);
    fake.send("again");
    fake.until_logged(&json!({ "event": "swallowed" }));
    fake.write(b"\r");
    fake.until_logged(&json!({ "n": 1, "text": "again" }));
}

#[test]
fn what_is_typed_at_a_menu_answers_it() {
    let mut fake = Fake::start("menu", &[]);
    fake.until_shown(PASTE_MODE_ON);
    fake.send("first");
    fake.until_shown("Do you want to proceed?");
    fake.write(b"\x1b[200~play it\x1b[201~");
    fake.until_logged(&json!({ "event": "granted", "text": "first" }));
    fake.until_shown("done");
    fake.send("second");
    fake.until_logged(&json!({ "n": 2, "text": "second" }));
    fake.write(b"\x1b");
    fake.until_logged(&json!({ "event": "denied", "text": "second" }));
}

#[test]
fn a_turn_is_interrupted_and_what_came_meanwhile_is_next() {
    let mut fake = Fake::start("plain", &[]);
    fake.until_shown(PASTE_MODE_ON);
    fake.send("[[slow 60]] long");
    fake.until_shown("working…");
    fake.send("meanwhile");
    fake.until_logged(&json!({ "n": 2, "text": "meanwhile" }));
    fake.write(b"\x1b");
    fake.until_logged(&json!({ "event": "interrupt" }));
    fake.until_shown("done");
}

#[test]
fn one_that_dies_does_so_when_it_has_read() {
    let mut fake = Fake::start("dies", &[]);
    fake.until_shown(PASTE_MODE_ON);
    fake.write(b"x");
    assert_eq!(fake.child.wait().unwrap().code(), Some(3));
    assert_eq!(fake.log(), [json!({ "event": "died" })]);
}

#[test]
fn queries_must_be_answered_first() {
    let mut fake = Fake::start("queries", &[]);
    fake.until_shown("\x1b]11;?");
    fake.write(b"\x1b[1;1R\x1b[?62;c");
    assert!(!fake.shown().contains(PASTE_MODE_ON));
    fake.write(b"\x1b]11;rgb:0000/0000/0000\x1b\\");
    fake.until_shown(PASTE_MODE_ON);
    fake.until_logged(&json!({ "event": "answered" }));
}

#[test]
fn a_flood_a_full_screen_and_a_mark_for_a_paste() {
    let mut fake = Fake::start("flood", &["--flood", "200000"]);
    fake.until_shown(PASTE_MODE_ON);
    fake.send("go");
    fake.until_shown("done");
    assert!(fake.shown().len() > 200_000);

    let mut fake = Fake::start("full-screen", &[]);
    fake.until_shown("\x1b[?1049h");
    fake.send("go");
    fake.until_shown("GOT 1");

    let mut fake = Fake::start("collapse", &[]);
    fake.until_shown(PASTE_MODE_ON);
    let text = "line\n".repeat(20);
    fake.write(format!("\x1b[200~{text}\x1b[201~").as_bytes());
    fake.until_shown("[Pasted text #1 +20 lines]");
    fake.write(b"\r");
    fake.until_logged(&json!({ "n": 1, "text": text }));
}

#[test]
fn a_slow_reader_a_silent_one_and_one_that_leaves_the_terminal_alone() {
    let mut fake = Fake::start("slow-reader", &[]);
    fake.until_shown(PASTE_MODE_ON);
    fake.send(&"x".repeat(3000));
    fake.until_logged(&json!({ "n": 1, "text": "x".repeat(3000) }));

    let mut fake = Fake::start("silent", &[]);
    fake.until_shown(PASTE_MODE_ON);
    fake.write(b"quiet\r");
    fake.until_logged(&json!({ "n": 1, "text": "quiet" }));
    assert!(!fake.shown().contains("quiet"));

    let mut fake = Fake::start("cooked", &[]);
    fake.until_shown("> ");
    fake.write(b"a line\n");
    fake.until_logged(&json!({ "n": 1, "text": "a line" }));
    assert!(!fake.shown().contains(PASTE_MODE_ON));
}
