//! Sessions that share a container: each with its own log, end and tree, and the container goes with the last.

use serde_json::Value;

use crate::dock::{Dock, on_both};
use crate::support::until;

on_both! {
    the_same_make_is_shared_and_another_is_not
    each_ends_by_itself_and_the_container_with_the_last
    ensure_at_the_same_time_starts_one
}

fn the_same_make_is_shared_and_another_is_not(dock: &Dock) {
    let wait = "echo up; while ! test -e /tmp/made; do sleep 0.05; done; echo seen; exec sleep 600";
    dock.start("one", &["--reuse"], &["sh", "-c", wait]);
    dock.start("two", &["--reuse", "-e", "A=1"], &["sh", "-c", "echo up $A; touch /tmp/made; sleep 600"]);
    dock.wharf.until_log("two", "up 1");
    dock.wharf.until_log("one", "seen");
    assert_eq!(dock.containers(), 1, "the same make is one container");
    dock.start(
        "other",
        &["--reuse", "--read-only"],
        &["sh", "-c", "test -e /tmp/made || echo fresh; sleep 600"],
    );
    dock.wharf.until_log("other", "fresh");
    dock.start("own", &[], &["sh", "-c", "test -e /tmp/made || echo fresh; sleep 600"]);
    dock.wharf.until_log("own", "fresh");
    assert_eq!(dock.containers(), 3);
    let shown = dock.wharf.json(&["show", "one", "--json"]);
    assert!(shown["isolation"].as_str().is_some_and(|text| text.contains("other sessions")), "{shown}");
    dock.ok(&["kill", "one", "two", "other", "own"]);
    dock.must_be_empty();
    assert!(until(|| std::fs::read_dir(dock.wharf.state().join("berths")).is_ok_and(|dir| dir.count() == 0)));
}

fn each_ends_by_itself_and_the_container_with_the_last(dock: &Dock) {
    let tree = "setsid sleep 600 & echo up; read -r line; echo got $line; exit 3";
    dock.start("one", &["--reuse"], &["sh", "-c", tree]);
    dock.start("two", &["--reuse"], &["sh", "-c", tree]);
    for name in ["one", "two"] {
        dock.wharf.until_log(name, "up");
    }
    // Neither a daemon's death nor the end of the first ends the second.
    dock.wharf.kill_daemon();
    dock.ok(&["write", "one", "first\n"]);
    assert_eq!(dock.run(&["wait", "one"]).code, 3);
    assert!(String::from_utf8_lossy(&dock.wharf.log("one")).contains("got first"));
    assert_eq!(
        dock.ok(&["exec", "two", "--", "cat", "/proc/1/cmdline"]).replace('\0', " ").trim(),
        "/run/wharf/holder keep"
    );
    let sleeps = || dock.ok(&["exec", "two", "--", "sh", "-c", "cat /proc/*/comm"]).matches("sleep").count();
    assert_eq!(sleeps(), 1, "what the first had started is gone, and what the second had is not");
    dock.ok(&["rm", "one"]);
    let berths = std::fs::read_dir(dock.wharf.state().join("berths")).expect("a directory");
    let rooms = berths
        .map(|berth| std::fs::read_dir(berth.expect("one").path().join("rooms")).expect("rooms").count());
    assert_eq!(rooms.sum::<usize>(), 1, "the first has left nothing there");
    dock.ok(&["write", "two", "second\n"]);
    assert_eq!(dock.run(&["wait", "two"]).code, 3);
    dock.must_be_empty();
    // Once more: a fresh container, and the log goes on.
    dock.ok(&["restart", "two"]);
    dock.ok(&["write", "two", "third\n"]);
    assert_eq!(dock.run(&["wait", "two"]).code, 3);
    // The last one ends while no daemon is there to see it: the next one takes the container away.
    dock.ok(&["restart", "two"]);
    dock.wharf.kill_daemon();
    dock.ok(&["write", "two", "fourth\n"]);
    dock.wharf.until_log("two", "got fourth");
    assert_eq!(dock.run(&["wait", "two"]).code, 3);
    dock.must_be_empty();
    let log = String::from_utf8_lossy(&dock.wharf.log("two")).into_owned();
    for word in ["second", "third", "fourth"] {
        assert_eq!(log.matches(&format!("got {word}")).count(), 1, "{log}");
    }
}

fn ensure_at_the_same_time_starts_one(dock: &Dock) {
    let ask = || {
        let place = [
            "ensure",
            "-b",
            dock.backend(),
            "--group",
            "team",
            "--image",
            crate::engine::IMAGE,
            "--network",
            "none",
            "--reuse",
            "--json",
        ];
        dock.command(&[&place[..], &["--", "sleep", "600"]].concat())
            .stdout(std::process::Stdio::piped())
            .spawn()
    };
    let asked: Vec<_> = (0..2).map(|_| ask().expect("wharf runs")).collect();
    let ids: Vec<Value> = asked
        .into_iter()
        .map(|child| {
            let out = child.wait_with_output().expect("an end");
            let answer: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
            answer.get("session").unwrap_or(&answer)["id"].clone()
        })
        .collect();
    assert!(ids[0].is_string() && ids[0] == ids[1], "{ids:?}");
    assert_eq!(dock.containers(), 1);
    dock.ok(&["kill", "--group", "team"]);
    dock.must_be_empty();
}
