//! What an image says of itself, and what its container says of the session.

use std::fs;

use serde_json::Value;

use crate::dock::{Dock, on_both};
use crate::engine::IMAGE;

on_both! {
    home_is_what_the_engine_sets
    without_a_command_the_image_says_what_is_run
    labels_and_the_name_stand_on_the_container
    an_image_for_another_platform_is_named_as_such
}

/// Runs a command in a container to its end, and gives what it printed.
fn said(dock: &Dock, name: &str, image: &str, options: &[&str], argv: &[&str]) -> String {
    let place = ["run", "-d", "--no-tty", "--name", name, "-b", dock.backend(), "--image", image];
    let closed = ["--pull", "never", "--network", "none"];
    let words: &[&str] = if argv.is_empty() { &[] } else { &["--"] };
    dock.ok(&[&place[..], &closed, options, words, argv].concat());
    assert_eq!(dock.run(&["wait", name]).code, 0, "{}", String::from_utf8_lossy(&dock.wharf.log(name)));
    String::from_utf8_lossy(&dock.wharf.log(name)).trim().to_owned()
}

fn home_is_what_the_engine_sets(dock: &Dock) {
    let script = "echo $HOME";
    for user in ["0:0", "other", "4321:4321"] {
        let run = ["run", "--rm", "--network", "none", "--user", user, IMAGE, "sh", "-c", script];
        let theirs = dock.engine(&run);
        let name = format!("home-{}", user.replace(':', "-"));
        let ours = said(dock, &name, IMAGE, &["--user", user], &["sh", "-c", script]);
        assert_eq!(ours, theirs, "as {user}");
    }
    assert_eq!(said(dock, "named", IMAGE, &["-e", "HOME=/x"], &["sh", "-c", script]), "/x");
    dock.start("one", &["--user", "0:0"], &["cat"]);
    let further = dock.ok(&["exec", "one", "--", "/bin/sh", "-c", script]);
    let run = ["run", "--rm", "--network", "none", "--user", "0:0", IMAGE, "sh", "-c", script];
    assert_eq!(further.trim(), dock.engine(&run));
}

fn without_a_command_the_image_says_what_is_run(dock: &Dock) {
    let tag = format!("localhost/wharf-test-words-{}:1", std::process::id());
    let dir = dock.wharf.home().join("build");
    fs::create_dir_all(&dir).expect("files of the test");
    let entry = serde_json::json!(["/bin/sh", "-c", "echo $0 $*", "entry"]);
    let file = format!("FROM {IMAGE}\nENTRYPOINT {entry}\nCMD [\"command\"]\n");
    fs::write(dir.join("Dockerfile"), file).expect("files of the test");
    dock.ok(&["image", "build", "build", "-t", &tag, "-b", dock.backend()]);
    assert_eq!(said(dock, "plain", &tag, &[], &[]), "entry command");
    let shown: Value = dock.wharf.json(&["show", "plain", "--json"]);
    assert_eq!(
        shown["argv"],
        serde_json::json!(["/bin/sh", "-c", "echo $0 $*", "entry", "command"]),
        "{shown}"
    );
    dock.ok(&["restart", "plain"]);
    assert_eq!(dock.run(&["wait", "plain"]).code, 0);
    assert_eq!(String::from_utf8_lossy(&dock.wharf.log("plain")).matches("entry command").count(), 2);
    assert_eq!(said(dock, "named", &tag, &[], &["/bin/sh", "-c", "echo named"]), "named");
    assert_eq!(said(dock, "before", &tag, &["--entrypoint", "/bin/sh"], &["-c", "echo a b"]), "a b");
    // And in the place of all that the image says.
    assert!(said(dock, "alone", &tag, &["--entrypoint", "/bin/id"], &[]).starts_with("uid="));
    // One that says nothing has a shell.
    let place = ["run", "-d", "-b", dock.backend(), "--image", IMAGE, "--network", "none", "--json"];
    let shell: Value = serde_json::from_str(&dock.ok(&place)).expect("JSON");
    assert_eq!(shell["argv"], serde_json::json!(["/bin/sh"]), "{shell}");
    let name = shell["name"].as_str().expect("a name");
    assert!(name.starts_with("wharf-test-host"), "it is called after its image: {shell}");
    dock.ok(&["kill", name]);
    dock.must_be_empty();
    dock.ok(&["image", "rm", &tag, "-b", dock.backend()]);
}

fn labels_and_the_name_stand_on_the_container(dock: &Dock) {
    let options = ["-l", "team=blue", "-l", "wharf.session=another", "-l", "wharf.berth=x"];
    dock.start("demo", &options, &["cat"]);
    let shown = dock.wharf.json(&["show", "demo", "--json"]);
    let (id, name) = (&shown["id"], shown["container"]["name"].as_str().expect("a name"));
    let labels = dock.engine(&["inspect", "-f", "{{json .Config.Labels}}", name]);
    let labels: Value = serde_json::from_str(&labels).expect("JSON");
    assert_eq!((&labels["team"], &labels["wharf.name"]), (&"blue".into(), &"demo".into()), "{labels}");
    assert_eq!(&labels["wharf.session"], id, "{labels}");
    assert!(labels["wharf.berth"].is_null(), "{labels}");
    assert_eq!(shown["labels"]["wharf.session"], "another", "what was asked for is kept: {shown}");
    dock.ok(&["kill", "demo"]);
    dock.must_be_empty();
}

fn an_image_for_another_platform_is_named_as_such(dock: &Dock) {
    let place = ["run", "-d", "-b", dock.backend(), "--image", IMAGE, "--network", "none", "--pull", "never"];
    let ran = dock.run(&[&place[..], &["--platform", "linux/s390x", "--", "true"]].concat());
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(ran.err.contains("linux/s390x") && ran.err.contains("is for linux/"), "{ran:#?}");
    let own = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };
    dock.ok(&[&place[..], &["--name", "own", "--platform", own, "--", "cat"]].concat());
    dock.ok(&["kill", "own"]);
    dock.must_be_empty();
}
