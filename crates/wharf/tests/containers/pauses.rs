//! Containers that stand still, whoever made them.

use crate::dock::{Dock, on_both};
use crate::support::until;

on_both! {
    by_wharf
    by_hand
}

const COUNT: &str = "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.02; done";

fn shown(dock: &Dock, name: &str, field: &str) -> serde_json::Value {
    let shown: serde_json::Value = serde_json::from_str(&dock.ok(&["show", name, "--json"])).expect("JSON");
    shown[field].clone()
}

fn by_wharf(dock: &Dock) {
    dock.start("one", &[], &["sh", "-c", COUNT]);
    dock.start("cat", &[], &["cat"]);
    dock.wharf.until_log("one", "3");
    assert_eq!(dock.ok(&["pause", "one", "cat"]), "one paused\ncat paused\n");
    assert!(dock.ok(&["ls"]).contains(", paused"));
    dock.ok(&["send", "cat", "it waits", "--no-wait"]);
    // A new daemon cannot speak to what stands still, and knows why.
    dock.wharf.kill_daemon();
    let before = dock.wharf.log("one");
    assert!(until(|| shown(dock, "one", "paused") == true), "{}", dock.ok(&["ls"]));
    assert_eq!(shown(dock, "one", "state"), "unknown");
    assert_eq!(dock.wharf.log("one"), before, "nothing of it runs");
    dock.ok(&["unpause", "one", "cat"]);
    assert_eq!((shown(dock, "one", "paused"), shown(dock, "one", "state")), (false.into(), "running".into()));
    assert!(until(|| dock.wharf.log("one").len() > before.len()), "it goes on");
    dock.wharf.until_log("cat", "it waits\r\nit waits");
    // It is ended though it stands still, and though the daemon has only just come.
    dock.ok(&["pause", "one", "cat"]);
    dock.ok(&["kill", "one"]);
    assert!(until(|| dock.containers() == 1));
    dock.wharf.kill_daemon();
    assert!(until(|| shown(dock, "cat", "paused") == true));
    dock.ok(&["stop", "-t", "1", "cat"]);
    dock.must_be_empty();
}

fn by_hand(dock: &Dock) {
    dock.start("one", &[], &["sh", "-c", COUNT]);
    dock.wharf.until_log("one", "3");
    let id = shown(dock, "one", "id").as_str().expect("an id").to_owned();
    let container = format!("wharf-{id}");
    assert_eq!(shown(dock, "one", "paused"), false);
    dock.engine(&["pause", &container]);
    assert!(until(|| shown(dock, "one", "paused") == true), "{}", dock.ok(&["ls"]));
    assert_eq!(shown(dock, "one", "state"), "running");
    dock.engine(&["unpause", &container]);
    assert!(until(|| shown(dock, "one", "paused") == false), "{}", dock.ok(&["ls"]));
    dock.engine(&["pause", &container]);
    assert!(until(|| shown(dock, "one", "paused") == true));
    dock.ok(&["unpause", "one"]);
    let before = dock.wharf.log("one").len();
    assert!(until(|| dock.wharf.log("one").len() > before), "it goes on");
}
