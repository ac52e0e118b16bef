//! Images and ports, and what people find on engines.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::dock::{Dock, on_both};
use crate::engine::{BUSYBOX, IMAGE};
use crate::support::{Pty, until};

on_both! {
    images_are_listed_built_and_removed
    ports_are_told
    a_published_port_is_reached
    what_a_container_has_no_command_for_is_said
    one_bad_image_among_several_keeps_no_other_from_being_removed
}

/// On Docker alone: Podman believes no registry without TLS unless its own configuration names its port.
#[test]
fn an_image_is_fetched_from_a_registry_in_steps() {
    let dock = Dock::new(wharf_container::Flavour::Docker);
    let registry = dock.registry();
    let image = registry.image("1");
    let mut pull = Pty::spawn(dock.command(&["image", "pull", &image, "-b", "docker"]), (100, 20));
    // Its last step, of the layer that is fetched.
    pull.until("100 %");
    assert_eq!(pull.end(), 0, "{}", pull.shown());
    let named = |all: &Value| {
        let has = |one: &Value| {
            one["names"].as_array().is_some_and(|names| names.iter().any(|name| *name == *image))
        };
        all.as_array().expect("a list").iter().any(has)
    };
    assert!(named(&json(&dock, &["image", "ls", "-b", "docker", "--json"])));
    // One that the registry does not have, and one that is for no processor of this machine.
    let missing = dock.run(&["image", "pull", &registry.image("none"), "-b", "docker"]);
    assert!(missing.code != 0 && missing.err.contains("wharf-pulled:none"), "{missing:#?}");
    let elsewhere = dock.run(&["image", "pull", &registry.image("elsewhere"), "-b", "docker"]);
    assert!(elsewhere.code != 0 && elsewhere.err.contains("--platform"), "{elsewhere:#?}");
    dock.ok(&["image", "rm", &image, "-b", "docker"]);
    assert!(!named(&json(&dock, &["image", "ls", "-b", "docker", "--json"])));
}

fn json(dock: &Dock, args: &[&str]) -> Value {
    serde_json::from_str(&dock.ok(args)).expect("JSON")
}

/// A name that no other test has, on an engine that they share.
fn unique(what: &str) -> String {
    format!("localhost/wharf-test-{what}-{}:1", std::process::id())
}

fn build(dock: &Dock, tag: &str, text: &str) -> Value {
    let dir = dock.wharf.home().join("build");
    fs::create_dir_all(&dir).expect("files of the test");
    fs::write(dir.join("made"), text).expect("files of the test");
    fs::write(dir.join("Dockerfile"), format!("FROM {IMAGE}\nCOPY made /made\n")).expect("files of the test");
    json(dock, &["image", "build", "build", "-t", tag, "-b", dock.engine_name(), "--json"])
}

fn images_are_listed_built_and_removed(dock: &Dock) {
    let tag = unique("image");
    let all = json(dock, &["image", "ls", "-b", dock.engine_name(), "--json"]);
    let of = |all: &Value, name: &str| {
        let named =
            |image: &&Value| image["names"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
        all.as_array().expect("a list").iter().find(named).cloned()
    };
    let image = of(&all, IMAGE).expect("the image of the tests");
    assert!(image["ours"] == false && image["backend"] == dock.engine_name(), "{image}");
    let first = build(dock, &tag, "one");
    assert_eq!((&first["ours"], &first["names"]), (&true.into(), &serde_json::json!([tag])), "{first}");
    // A newer one takes its name, while a session still needs the first.
    let start = ["run", "-d", "--name", "old", "-b", dock.engine_name(), "--image", &tag, "--pull", "never"];
    dock.ok(&[&start[..], &["--network", "none", "--", "sleep", "600"]].concat());
    let second = build(dock, &tag, "two");
    assert_ne!(first["id"], second["id"]);
    assert_eq!(json(dock, &["image", "prune", "-a", "-n", "--json"]), serde_json::json!([second]));
    dock.ok(&["kill", "old"]);
    let unneeded = || json(dock, &["image", "prune", "-n", "--json"]);
    // Some engines keep what is a step of another image, without a name and out of the list.
    if until(|| dock.containers() == 0) && !unneeded().as_array().expect("a list").is_empty() {
        let removed = json(dock, &["image", "prune", "--json"]);
        assert_eq!(removed[0]["id"], first["id"], "{removed}");
    }
    assert!(of(&json(dock, &["image", "ls", "--json"]), &tag).is_some(), "what has a name is kept");
    // What a container needs is kept, whoever asks.
    dock.ok(&[
        "run",
        "-d",
        "--name",
        "new",
        "-b",
        dock.engine_name(),
        "--image",
        &tag,
        "--network",
        "none",
        "--",
        "sleep",
        "600",
    ]);
    let ran = dock.run(&["image", "rm", &tag, "-b", dock.engine_name()]);
    assert!(ran.code == 8 && ran.err.contains("hint:"), "{ran:#?}");
    assert_eq!(json(dock, &["image", "prune", "-a", "--json"]), serde_json::json!([]));
    dock.ok(&["kill", "new"]);
    dock.must_be_empty();
    assert_eq!(dock.ok(&["image", "rm", &tag, "-b", dock.engine_name()]), format!("{tag} removed\n"));
    assert_eq!(dock.run(&["image", "rm", &tag, "-b", dock.engine_name()]).code, 3);
    assert!(of(&json(dock, &["image", "ls", "--json"]), IMAGE).is_some(), "what is not ours is never pruned");
    assert_eq!(dock.run(&["image", "ls", "-b", "local"]).code, 6);
    let ran = dock.run(&["image", "pull", "localhost:1/none-such", "-b", dock.engine_name()]);
    assert!(ran.code == 7 && ran.err.contains("none-such"), "{ran:#?}");
}

fn ports_are_told(dock: &Dock) {
    let args = [
        "run",
        "-d",
        "--name",
        "one",
        "-b",
        dock.engine_name(),
        "--image",
        IMAGE,
        "--publish",
        "8080",
        "-p",
        "auto",
    ];
    dock.ok(&[&args[..], &["--", "sleep", "600"]].concat());
    let ports = json(dock, &["port", "one", "--json"]);
    let all = ports.as_array().expect("a list");
    assert_eq!(all.len(), 2, "{ports}");
    let web = all.iter().find(|port| port["inside"] == 8080).expect("it is published");
    assert!(web["address"] == "127.0.0.1" && web["port"] != 0, "{ports}");
    let reserved = all.iter().find(|port| port["variable"] == "PORT").expect("it is reserved");
    assert_eq!(reserved["inside"], reserved["port"]);
    assert_eq!(dock.ok(&["port", "one", "8080"]), format!("127.0.0.1:{}\n", web["port"]));
    assert_eq!(dock.run(&["port", "one", "8080/udp"]).code, 3);
}

fn a_published_port_is_reached(dock: &Dock) {
    let start = |name: &str, image: &str, words: &[&str]| {
        let place =
            ["run", "-d", "--name", name, "-b", dock.engine_name(), "--image", image, "--pull", "never"];
        dock.ok(&[&place[..], words].concat());
    };
    let serve = ["/bin/busybox", "httpd", "-f", "-p", "8080", "-h", "/bin"];
    start("web", BUSYBOX, &[&["--publish", "8080", "--"], &serve[..]].concat());
    let address = dock.ok(&["port", "web", "8080"]);
    let port = address.trim().rsplit(':').next().expect("a port");
    // The engine of the tests has a network of its own: it is looked at from there.
    let look = format!(
        "until exec 3<>/dev/tcp/127.0.0.1/{port}; do sleep 0.1; done 2>/dev/null; \
         printf 'GET /none HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    );
    start("look", IMAGE, &["--network", "host", "--", "bash", "-c", &look]);
    dock.wharf.until_log("look", "404 Not Found");
}

/// The terminal is the holder's, and no command of an engine leads to it: what would look like one would be another shell.
fn what_a_container_has_no_command_for_is_said(dock: &Dock) {
    dock.start("one", &[], &["sleep", "600"]);
    let ran = dock.run(&["attach", "--print-command", "one"]);
    assert!(ran.code == 6 && ran.err.contains("wharf attach one"), "{ran:#?}");
    // Where the image decides, it is told where the command runs, and further commands run there too.
    let shown = json(dock, &["show", "one", "--json"]);
    assert_eq!(shown["dir"], "/");
    assert_eq!(dock.ok(&["exec", "one", "--", "sh", "-c", "pwd"]).trim(), "/");
    let used = json(dock, &["stats", "one", "--json"]);
    assert!(used[0]["processes"] == 1 && used[0]["memory"] != 0, "{used}");
}

fn one_bad_image_among_several_keeps_no_other_from_being_removed(dock: &Dock) {
    let place = ["-b", dock.backend()];
    let tags =
        ["first", "last"].map(|word| format!("localhost/wharf-test-several-{word}-{}:1", std::process::id()));
    for tag in &tags {
        dock.engine(&["tag", BUSYBOX, tag]);
    }
    let missing = "localhost/wharf-test-no-such-image:1";
    let ran = dock.run(&[&["image", "rm", tags[0].as_str(), missing, tags[1].as_str()], &place[..]].concat());
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(ran.out, format!("{} removed\n{} removed\n", tags[0], tags[1]), "{ran:#?}");
    assert!(ran.err.contains(missing), "{ran:#?}");
    let left = json(dock, &[&["image", "ls", "--json"], &place[..]].concat()).to_string();
    assert!(tags.iter().all(|tag| !left.contains(tag.as_str())), "{left}");
}

/// As that of a dev shell does; see the tests of environments. On Docker alone: Podman takes the step that is under way to
/// its end, whoever hangs up.
#[test]
fn whoever_interrupts_a_preparation_ends_the_build() {
    let dock = Dock::new(wharf_container::Flavour::Docker);
    let mark = format!("600.4{}", std::process::id());
    let dir = dock.wharf.home().join("build");
    fs::create_dir_all(&dir).expect("files of the test");
    fs::write(dir.join("Dockerfile"), format!("FROM {IMAGE}\nRUN sleep {mark}\n"))
        .expect("files of the test");
    let args = ["run", "-d", "-b", dock.engine_name(), "--build", "build", "--network", "none", "--", "true"];
    let mut child =
        dock.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("wharf runs");
    let steps = || {
        let all = fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
        all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
            .filter(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes()))
            .count()
    };
    assert!(until(|| steps() > 0), "the build has not begun");
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    assert!(until(|| steps() == 0), "something of the build is left");
    assert_eq!(dock.ok(&["ls", "--json"]).trim(), "[]");
}
