//! Which engine a session is on: the one that its caller means, and then always that one.

use std::process::Command;

use serde_json::Value;

use crate::dock::{Dock, on_both};
use crate::engine::IMAGE;
use crate::support::{Ran, until};

on_both! {
    the_callers_engine_is_used_though_a_daemon_runs_with_another
    what_the_engines_own_client_hands_on_is_there
}

/// A command of somebody whose engine is none.
fn elsewhere(dock: &Dock, args: &[&str]) -> Command {
    let mut command = dock.wharf.command(args);
    command.env("DOCKER_HOST", "unix:///nowhere.sock").env("CONTAINER_HOST", "unix:///nowhere.sock");
    command
}

fn ran(mut command: Command) -> Ran {
    command.output().expect("wharf runs").into()
}

fn the_callers_engine_is_used_though_a_daemon_runs_with_another(dock: &Dock) {
    // The daemon has the variables of whoever came first.
    assert_eq!(ran(elsewhere(dock, &["daemon", "start"])).code, 0);
    dock.start("one", &[], &["sh", "-c", "echo run; exec cat"]);
    dock.wharf.until_log("one", "run");
    let shown: Value = serde_json::from_str(&dock.ok(&["show", "one", "--json"])).expect("JSON");
    let (id, name) = (&shown["container"]["id"], shown["container"]["name"].as_str().expect("a name"));
    assert_eq!(id.as_str().expect("an id"), dock.engine(&["inspect", "-f", "{{.Id}}", name]));
    assert!(dock.ok(&["show", "one"]).contains(name), "{shown}");
    // The same for questions, and for one who means no engine of the place none is taken in its stead.
    assert!(dock.ok(&["image", "ls", "-b", dock.backend()]).contains(IMAGE));
    assert_ne!(ran(elsewhere(dock, &["image", "ls", "-b", dock.backend()])).code, 0);
    let refused = ran(elsewhere(dock, &["run", "-d", "-b", dock.backend(), "--image", IMAGE, "--", "true"]));
    assert!(refused.code == 7 && refused.err.contains("nowhere.sock"), "{refused:#?}");
    // Also where no place is named: the one whose engine answers this caller.
    let open = ["run", "-d", "--image", IMAGE, "--network", "none", "--json", "--", "sh", "-c", "exit 0"];
    let chosen: Value = serde_json::from_str(&dock.ok(&open)).expect("JSON");
    assert!(dock.backend() != "docker" || chosen["backend"] == "docker", "{chosen}");
    // Whatever is meant by those who come later, and by the next daemon.
    assert_eq!(ran(elsewhere(dock, &["restart", "one"])).code, 0);
    dock.wharf.until_log("one", "run\r\nrun");
    dock.wharf.ok(&["daemon", "stop"]);
    assert_eq!(ran(elsewhere(dock, &["daemon", "start"])).code, 0);
    let state = || dock.wharf.json(&["show", "one", "--json"])["state"].clone();
    assert!(until(|| state() != "unknown" && state() != "lost"), "{}", state());
    assert_eq!(ran(elsewhere(dock, &["stop", "one"])).code, 0);
    dock.must_be_empty();
}

fn what_the_engines_own_client_hands_on_is_there(dock: &Dock) {
    let config = dock.wharf.home().join("config");
    std::fs::create_dir_all(&config).expect("files of the test");
    let json = r#"{"proxies":{"default":{"httpProxy":"http://configured:1"}}}"#;
    std::fs::write(config.join("config.json"), json).expect("files of the test");
    std::fs::write(config.join("containers.conf"), "[containers]\ntz = \"Asia/Tokyo\"\n")
        .expect("files of the test");
    let script = "echo http=$http_proxy HTTP=$HTTP_PROXY no=$no_proxy TZ=$TZ; echo said; exec cat";
    let mut command = dock.command(&[
        "run",
        "-d",
        "--name",
        "one",
        "-b",
        dock.backend(),
        "--image",
        IMAGE,
        "--network",
        "none",
        "-e",
        "HTTP_PROXY=http://named:1",
        "--",
        "sh",
        "-c",
        script,
    ]);
    // A path is one of where it is typed.
    command.env("DOCKER_CONFIG", "config").env("CONTAINERS_CONF", "config/containers.conf");
    command.env("http_proxy", "http://callers:1").env("no_proxy", "callers");
    let ran = ran(command);
    assert_eq!(ran.code, 0, "{ran:#?}");
    dock.wharf.until_log("one", "said");
    let log = String::from_utf8_lossy(&dock.wharf.log("one")).into_owned();
    let expected = match dock.backend() {
        "docker" => "http=http://configured:1 HTTP=http://named:1 no= TZ=",
        _ => "http=http://callers:1 HTTP=http://named:1 no=callers TZ=Asia/Tokyo",
    };
    assert_eq!(log.lines().next().unwrap_or_default(), expected, "{log}");
}
