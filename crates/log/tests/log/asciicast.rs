//! Recordings that others can play.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use serde_json::{Value, json};
use wharf_log::asciicast::{About, Version, export};
use wharf_log::{Mark, Retention, Stream, Writer};
use wharf_model::Size;

use crate::support::{keep_all, place};

const SECOND: u64 = 1_000_000;
const BEGIN: u64 = 1_700_000_000 * SECOND;

fn cast(dir: &Path, about: &About) -> (Value, Vec<Value>) {
    let mut out = Vec::new();
    export(dir, &mut out, about).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.next().unwrap(), lines.collect())
}

fn v2() -> About {
    About { version: Version::V2, ..About::default() }
}

fn text(events: &[Value]) -> String {
    events.iter().filter(|event| event[1] == "o").map(|event| event[2].as_str().unwrap()).collect()
}

/// A session of some seconds with everything in it.
fn record(dir: &Path) {
    let mut writer = Writer::open(dir, keep_all(1 << 20)).unwrap();
    writer.mark(Mark::Resize(Size { cols: 80, rows: 24 }), BEGIN).unwrap();
    writer.mark(Mark::Resize(Size { cols: 100, rows: 30 }), BEGIN).unwrap();
    writer.mark(Mark::Time, BEGIN).unwrap();
    writer.append(b"one\r\n\xe2").unwrap();
    writer.tick(BEGIN + SECOND).unwrap();
    writer.append(b"\x82\xac\0\xff").unwrap();
    writer.tick(BEGIN + 3 * SECOND / 2).unwrap();
    writer.mark(Mark::Resize(Size { cols: 120, rows: 40 }), BEGIN + 2 * SECOND).unwrap();
    writer.mark(Mark::Stream(Stream::Stderr), BEGIN + 4 * SECOND).unwrap();
    writer.append(b"end").unwrap();
    writer.tick(BEGIN + 4 * SECOND + 250).unwrap();
}

#[test]
fn both_versions_say_the_same() {
    let (_home, dir) = place();
    record(&dir);
    let about = About {
        title: Some("a \"title\"".into()),
        command: Some("run --it".into()),
        term: Some("xterm-256color".into()),
        env: vec![("SHELL".into(), "/bin/sh".into())],
        exit: Some(3),
        ended: Some(BEGIN + 5 * SECOND),
        ..About::default()
    };
    let (header, events) = cast(&dir, &about);
    // The log was opened now, long after the times that the test makes up.
    let opened = header["timestamp"].as_u64().unwrap();
    assert_eq!(
        header,
        json!({
            "version": 3,
            "term": {"cols": 100, "rows": 30, "type": "xterm-256color"},
            "timestamp": opened,
            "title": "a \"title\"",
            "command": "run --it",
            "env": {"SHELL": "/bin/sh"},
        })
    );
    let expected = [
        json!([1.0, "o", "one\r\n"]),
        json!([0.5, "o", "€\0\u{fffd}"]),
        json!([0.5, "r", "120x40"]),
        json!([2.00025, "o", "end"]),
        json!([0.99975, "x", "3"]),
    ];
    assert_eq!(events, expected);

    let (header, events) = cast(&dir, &About { version: Version::V2, ..about });
    assert_eq!(
        (&header["version"], &header["width"], &header["height"]),
        (&json!(2), &json!(100), &json!(30))
    );
    assert_eq!(header["env"], json!({"TERM": "xterm-256color", "SHELL": "/bin/sh"}));
    let expected = [
        json!([1.0, "o", "one\r\n"]),
        json!([1.5, "o", "€\0\u{fffd}"]),
        json!([2.0, "r", "120x40"]),
        json!([4.00025, "o", "end"]),
    ];
    assert_eq!(events, expected);
}

#[test]
fn an_empty_log_is_a_header() {
    let (_home, dir) = place();
    drop(Writer::open(&dir, keep_all(1)).unwrap());
    let (header, events) = cast(&dir, &About::default());
    assert_eq!((&header["term"], events.len()), (&json!({"cols": 80, "rows": 24}), 0));
}

#[test]
fn time_goes_on_when_the_clock_is_set_back() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(1 << 20)).unwrap();
    writer.mark(Mark::Time, BEGIN).unwrap();
    for second in [1, 2, 1001, 3, 4] {
        writer.append(b"x").unwrap();
        writer.tick(BEGIN + second * SECOND).unwrap();
    }
    let (_, events) = cast(&dir, &v2());
    let times: Vec<_> = events.iter().map(|event| event[0].as_f64().unwrap()).collect();
    assert_eq!(times, [1.0, 2.0, 1001.0, 1001.0, 1002.0]);
}

#[test]
fn times_that_leap_to_and_fro_overflow_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(home.path(), Retention::default()).unwrap();
    for _ in 0..3 {
        writer.append(b"x").unwrap();
        writer.mark(Mark::Restart(1), 0).unwrap();
        writer.append(b"y").unwrap();
        writer.mark(Mark::Restart(2), u64::MAX).unwrap();
    }
    for about in [About::default(), v2()] {
        let (_, events) = cast(home.path(), &about);
        assert_eq!(text(&events), "xyxyxy");
    }
}

#[test]
fn marks_at_the_border_of_segments_are_told_once() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, keep_all(150)).unwrap();
    writer.mark(Mark::Time, BEGIN).unwrap();
    for n in 1..=30 {
        writer.mark(Mark::Restart(n), BEGIN).unwrap();
        writer.mark(Mark::Resize(Size { cols: n as u16, rows: 1 }), BEGIN).unwrap();
        writer.append(&[b'x'; 40]).unwrap();
        writer.tick(BEGIN + u64::from(n) * SECOND).unwrap();
    }
    let (header, events) = cast(&dir, &About::default());
    assert_eq!(header["term"]["cols"], 1);
    let of = |code: &str| -> Vec<_> {
        events
            .iter()
            .filter(|event| event[1] == code)
            .map(|event| event[2].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(of("m"), (1..=30).map(|n| format!("run {n}")).collect::<Vec<_>>());
    assert_eq!(of("r"), (2..=30).map(|n| format!("{n}x1")).collect::<Vec<_>>());
    assert_eq!(text(&events).len(), 1200);
}

#[test]
fn what_retention_dropped_is_not_in_it() {
    let (_home, dir) = place();
    let mut writer = Writer::open(&dir, Retention { total: 2000, segment: 200 }).unwrap();
    writer.mark(Mark::Resize(Size { cols: 77, rows: 7 }), BEGIN).unwrap();
    for _ in 0..1000 {
        // The start of what is kept may cut a character; the rest is whole.
        writer.append("€€€".as_bytes()).unwrap();
    }
    let (header, events) = cast(&dir, &About::default());
    assert_eq!(header["term"], json!({"cols": 77, "rows": 7}));
    let kept = writer.end() - writer.start();
    assert_eq!(text(&events), "€".repeat(kept as usize / 3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_bytes_become_the_same_text(
        chunks in prop::collection::vec(
            prop::collection::vec(prop::sample::select(&b"a\"\\\n\0\x1b\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff"[..]), 0..30),
            0..30,
        ),
        segment in 60..500u64,
    ) {
        let (_home, dir) = place();
        let mut writer = Writer::open(&dir, keep_all(segment)).unwrap();
        for (n, chunk) in (1..).zip(&chunks) {
            writer.append(chunk).unwrap();
            writer.tick(BEGIN + n * SECOND / 300).unwrap();
        }
        let bytes = chunks.concat();
        let expected = String::from_utf8_lossy(&bytes);
        for about in [About::default(), v2()] {
            prop_assert_eq!(text(&cast(&dir, &about).1), &*expected);
        }
    }
}

#[test]
fn asciinema_reads_it() {
    let (home, dir) = place();
    record(&dir);
    let file = home.path().join("demo.cast");
    export(&dir, &mut std::fs::File::create(&file).unwrap(), &v2()).unwrap();
    if let Err(error) = Command::new("asciinema").arg("--version").output() {
        drop(home);
        wharf_boundary::left_out(&format!("cannot run asciinema: {error}"));
    }
    // It wants a terminal to read keys from, even for this; script(1) gives it one.
    let played = home.path().join("played");
    let command = format!("asciinema cat {} > {}", file.display(), played.display());
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(std::fs::read_to_string(played).unwrap(), "one\r\n€\0\u{fffd}end");
}
