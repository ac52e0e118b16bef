//! Tests `wharf capture` and `screen`: forms, changes and watching.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Wharf, until};

#[test]
fn the_screen_is_captured_in_every_form() {
    let wharf = Wharf::new();
    let script = "seq 1 50; printf '\\033[31mred\\033[0m & <b>'; exec sleep 1000";
    wharf.start("one", &["--size", "40x10"], &["sh", "-c", script]);
    assert!(
        until(|| wharf.ok(&["capture", "one"]).contains("red & <b>")),
        "{}",
        wharf.ok(&["capture", "one"])
    );
    let screen = wharf.ok(&["capture", "one"]);
    assert!(screen.starts_with("42\n43\n") && !screen.contains('\x1b'), "{screen:?}");
    assert_eq!(wharf.ok(&["capture", "one", "-n", "3"]), "49\n50\nred & <b>\n");
    for all in ["--all", "--scrollback"] {
        assert!(wharf.ok(&["capture", "one", all]).starts_with("1\n2\n3\n"));
    }
    assert!(wharf.ok(&["capture", "one", "--ansi"]).contains("\x1b["));
    let html = wharf.ok(&["capture", "one", "--html"]);
    assert!(html.contains("&amp; &lt;b&gt;") && !html.contains("<b>"), "{html}");
    assert!(wharf.json(&["capture", "one", "--json"]).is_object());
    assert_eq!(wharf.ok(&["screen", "one"]), screen);
    wharf.ok(&["kill", "one"]);
    assert!(wharf.ok(&["capture", "one"]).contains("red & <b>"), "one that has ended is shown as it was");
    assert_eq!(wharf.run(&["capture", "nobody"]).code, 3);
}

#[test]
fn only_what_changed_is_told() {
    let wharf = Wharf::new();
    wharf.start("one", &["--size", "40x10"], &["cat"]);
    wharf.ok(&["send", "one", "first"]);
    // Echoed and printed.
    wharf.until_log("one", "first\r\nfirst");
    let whole = wharf.json(&["capture", "one", "--since", "start", "--json"]);
    assert_eq!((&whole["whole"], &whole["rows"][0]["text"]), (&true.into(), &"first".into()), "{whole}");
    let cursor = whole["cursor"].as_str().unwrap();
    let none = wharf.json(&["capture", "one", "--since", cursor, "--json"]);
    assert_eq!(none["rows"], serde_json::json!([]), "{none}");
    wharf.ok(&["send", "one", "second"]);
    let since = || wharf.json(&["capture", "one", "--since", cursor, "--json"]);
    assert!(until(|| since()["rows"].as_array().is_some_and(|rows| rows.len() == 2)), "{}", since());
    let ran = wharf.run(&["capture", "one", "--since", cursor]);
    assert_eq!(ran.out, "   3 second\n   4 second\n", "{ran:#?}");
    assert!(ran.err.starts_with("cursor "), "{ran:#?}");
}

#[test]
fn a_screen_is_watched_to_its_end() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["cat"]);
    wharf.ok(&["send", "one", "before"]);
    wharf.until_log("one", "before\r\nbefore");
    let mut watching =
        wharf.command(&["screen", "one", "--watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!((&first["whole"], &first["rows"][0]["text"]), (&true.into(), &"before".into()));
    wharf.ok(&["send", "one", "after"]);
    let change = next();
    assert_eq!((&change["whole"], &change["rows"][0]["text"]), (&false.into(), &"after".into()), "{change}");
    wharf.ok(&["kill", "one"]);
    assert!(lines.all(|line| line.is_ok()));
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}
