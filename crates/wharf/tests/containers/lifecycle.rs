//! A session in a container is used as any other.

use serde_json::Value;

use crate::dock::{Dock, on_both};
use crate::engine::IMAGE;
use crate::support::until;

on_both! {
    from_start_to_end
    it_is_started_again
    what_is_asked_for_is_had_or_refused
    a_message_arrives
}

fn from_start_to_end(dock: &Dock) {
    let home = dock.wharf.home().to_str().expect("UTF-8").to_owned();
    dock.start(
        "one",
        &["-v", "."],
        &["sh", "-c", "pwd; echo here > made; read -r line; echo got $line; exit 7"],
    );
    dock.wharf.until_log("one", &home);
    let shown: Value = serde_json::from_str(&dock.ok(&["show", "one", "--json"])).expect("JSON");
    assert!(
        shown["isolation"].as_str().is_some_and(|text| text.contains(&format!("writable {home}"))),
        "{shown}"
    );
    assert_eq!(dock.ok(&["exec", "one", "--", "cat", "made"]).trim(), "here");
    dock.ok(&["write", "one", "hello\n"]);
    dock.wharf.until_log("one", "got hello");
    assert_eq!(dock.run(&["wait", "one"]).code, 7);
    assert_eq!(std::fs::read_to_string(dock.wharf.home().join("made")).expect("it was made"), "here\n");
    dock.must_be_empty();
    dock.ok(&["rm", "one"]);
    assert_eq!(std::fs::read_dir(dock.wharf.state().join("sessions")).expect("a directory").count(), 0);
}

fn it_is_started_again(dock: &Dock) {
    let script = "echo run; test -e /tmp/mark && echo old; touch /tmp/mark; sleep 0.2; exit 3";
    dock.start("again", &["--restart", "on-failure", "--restart-max", "2"], &["sh", "-c", script]);
    let runs = || String::from_utf8_lossy(&dock.wharf.log("again")).matches("run").count();
    assert!(until(|| runs() == 3), "{} runs", runs());
    let ended = || dock.wharf.json(&["show", "again", "--json"])["state"] == "exited";
    assert!(until(ended), "{}", dock.wharf.json(&["show", "again", "--json"]));
    assert!(
        !String::from_utf8_lossy(&dock.wharf.log("again")).contains("old"),
        "each run has a fresh container"
    );
    dock.must_be_empty();
}

fn what_is_asked_for_is_had_or_refused(dock: &Dock) {
    let ran = dock.run(&["run", "-d", "-b", "local", "--image", IMAGE, "--", "true"]);
    assert_eq!(ran.code, 6, "{ran:#?}");
    let ran = dock.run(&["run", "-d", "-v", ".", "--", "true"]);
    assert_eq!(ran.code, 2, "a volume without an image: {ran:#?}");
    let ran =
        dock.run(&["run", "-d", "--image", IMAGE, "--pull", "never", "--network", "none", "--", "/no/such"]);
    assert_eq!(ran.code, 127, "{ran:#?}");
    let ran = dock.run(&["run", "-d", "--image", "localhost/none-such", "--pull", "never", "--", "true"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(ran.err.contains("none-such"), "{ran:#?}");
    // No engine is named: the one that answers is used, and never this host.
    let out =
        dock.ok(&["run", "-d", "--image", IMAGE, "--network", "none", "--json", "--", "sh", "-c", "exit 0"]);
    let session: Value = serde_json::from_str(&out).expect("JSON");
    assert!(matches!(session["backend"].as_str(), Some("docker" | "podman")), "{session}");
    dock.must_be_empty();
}

fn a_message_arrives(dock: &Dock) {
    dock.start("cat", &[], &["cat"]);
    let ran = dock.run(&["send", "cat", "as it is", "--json", "--timeout", "60"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let receipt: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(receipt["status"], "confirmed", "{receipt}");
    dock.wharf.until_log("cat", "as it is\r\nas it is");
}
