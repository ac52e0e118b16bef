//! What each verb says where there is no room: on a full disk, and on a standard output that takes nothing.

use std::fs::{self, File};
use std::process::Stdio;

use crate::full_disk::Disk;
use crate::ground::Ground;
use crate::support::{Ran, TEST_TIMEOUT, kill, lives, until};
use crate::tmpfs::in_a_namespace;

/// More than a socket takes ahead, so that whoever reads it says no in the middle.
const LARGE_LEN: usize = 4 << 20;

/// Runs a command that must end, with its standard output somewhere else than here where that is said.
fn ended(ground: &Ground, args: &[&str], out: Option<File>) -> Ran {
    let mut command = ground.command(args);
    let out = out.map_or_else(Stdio::piped, Stdio::from);
    let mut child = command.stdout(out).stderr(Stdio::piped()).spawn().unwrap();
    let over = until(|| child.try_wait().unwrap().is_some());
    if !over {
        let _ = child.kill();
    }
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(over, "{args:?} did not end within {TEST_TIMEOUT:?}: {ran:#?}");
    ran
}

#[track_caller]
fn is_full(ran: &Ran, what: &str) {
    assert_eq!(ran.code, 8, "{what}: {ran:#?}");
    if let Ok(failure) = serde_json::from_str::<serde_json::Value>(&ran.err) {
        assert_eq!(failure["code"], "disk_full", "{what}: {failure}");
    } else {
        assert!(ran.err.starts_with("wharf: "), "{what}: {ran:#?}");
        assert!(ran.err.contains("\nhint: the disk is full"), "{what}: {ran:#?}");
    }
}

fn session(ground: &Ground, name: &str) {
    ground.start(name, &[], &["sh", "-c", "echo ready; while read x; do echo \"<$x>\"; done"]);
    ground.until_log(name, "ready");
}

#[test]
fn a_full_disk_is_told_as_one_by_every_verb() {
    in_a_namespace("full_verbs::a_full_disk_is_told_as_one_by_every_verb", || {
        let disk = Disk::new();
        let (ground, elsewhere) = (&disk.ground, tempfile::tempdir().unwrap());
        session(ground, "one");
        let copied = elsewhere.path().join("copied");
        ground.start("over", &["--log", copied.to_str().unwrap()], &["sh", "-c", "exit 5"]);
        assert_eq!(ground.run(&["wait", "over"]).code, 5);
        let record = |name: &str| ground.state().join("names/over").join(name);
        let copied =
            || fs::read_to_string(record("pipe.json")).is_ok_and(|text| text.contains("\"done\":true"));
        assert!(until(copied), "the copy of its output is not whole");
        fs::write(ground.home().join("here"), vec![b'x'; 64 << 10]).unwrap();
        let large = elsewhere.path().join("large");
        fs::write(&large, vec![b'x'; LARGE_LEN]).unwrap();
        let project = ground.home().join("wharf.toml");
        fs::write(&project, "[agents.claude.launch]\nargs = ['-x']\n").unwrap();
        let path = |name: &str| ground.home().join(name).to_str().unwrap().to_owned();
        disk.fill();

        let (large, project) = (large.to_str().unwrap(), project.to_str().unwrap());
        let (copy, cast, into) = (path("copy"), path("cast"), path("into"));
        for args in [
            &["run", "-d", "--", "sleep", "1000"][..],
            &["run", "-d", "--json", "--no-tty", "--", "sleep", "1000"],
            &["run", "-d", "--after", "one", "--", "sleep", "1000"],
            &["ensure", "--name", "new", "--", "sleep", "1000"],
            &["restart", "over"],
            &["send", "one", "text"],
            &["send", "--no-wait", "one", "text"],
            &["ask", "one", "text"],
            &["rename", "one", "other"],
            &["env", "one", "A=1"],
            &["pipe", "one", &copy],
            &["cp", large, "one:large"],
            &["cp", "one:here", &into],
            &["record", "export", "one", "-o", &cast],
            &["hook", "install", "claude"],
            &["trust", "--yes", project],
        ] {
            is_full(&ended(ground, args, None), &args.join(" "));
        }
        let file = File::create(path("text")).unwrap();
        is_full(&ended(ground, &["logs", "one"], Some(file)), "logs to a file");
        // One that never ran before has no room for anything.
        let fresh = ground.home().join("fresh");
        fs::create_dir(&fresh).unwrap();
        let fresh = Ground::at(&fresh);
        is_full(&ended(&fresh, &["ls"], None), "the first daemon");
        is_full(&ended(&fresh, &["run", "-d", "--", "true"], None), "the first session");

        // Nothing of it was done by half, and all of it works again.
        assert_eq!(ground.states().len(), 2, "{:?}", ground.states());
        let daemon = ground.daemon_pid().unwrap();
        kill(daemon);
        assert!(until(|| !lives(daemon)));
        disk.free();
        assert!(record("exit.json").exists(), "the restart that failed took the record of its end along");
        let over = ground.show("over");
        assert_eq!((&over["state"], &over["exit"]["code"]), (&"exited".into(), &5.into()), "{over}");
        assert_eq!(ground.show("one")["name"], "one");
        ground.ok(&["send", "one", "again", "--timeout", "30"]);
        ground.until_log("one", "<again>");
        assert!(
            !String::from_utf8_lossy(&ground.log("one")).contains("<text>"),
            "what was refused was typed"
        );
        ground.ok(&["restart", "over"]);
    });
}

#[test]
fn a_standard_output_without_room_is_told_by_every_verb() {
    let ground = Ground::new();
    session(&ground, "one");
    ground.start("over", &[], &["sh", "-c", "seq 100000"]);
    ground.ok(&["wait", "over"]);
    ground.ok(&["send", "one", "text", "--timeout", "30"]);
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["ls", "-q"],
        &["show", "one"],
        &["show", "--json", "one"],
        &["logs", "one"],
        &["logs", "--plain", "over"],
        &["logs", "-f", "over"],
        &["record", "export", "over"],
        &["capture", "one"],
        &["capture", "--json", "one"],
        &["capture", "--all", "over"],
        &["messages", "one"],
        &["events", "one"],
        &["explain", "one"],
        &["env", "one"],
        &["stats", "one"],
        &["agents"],
        &["backends"],
        &["doctor"],
        &["daemon", "status"],
        &["trust", "ls"],
        &["cp", "one:/etc/hostname", "-"],
        &["attach", "over"],
        &["run", "-a", "--", "seq", "100000"],
        &["run", "-a", "--no-tty", "--", "seq", "100000"],
        &["wait", "--json", "over"],
        &["version"],
        &["man"],
        &["completions", "bash"],
        &["help"],
        &["--help"],
        &["run", "--help"],
        &["help", "exit-codes"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        is_full(&ended(&ground, args, Some(full)), &args.join(" "));
    }
}
