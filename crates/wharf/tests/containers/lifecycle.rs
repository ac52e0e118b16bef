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
    what_was_asked_for_is_so_inside
    orphans_inside_are_reaped
    a_secret_by_reference_is_read_inside
    what_comes_and_goes_by_the_network_is_counted
}

fn a_secret_by_reference_is_read_inside(dock: &Dock) {
    let script =
        "a=$(cat $WHARF_SECRETS/a); b=$(cat /run/secrets/b); echo \"${#a} and ${#b} long\"; exec sleep 600";
    let options =
        ["--restart", "always", "--secret", "a=env:MY_KEY", "--secret", "b=command:printf '%s' \"$MY_KEY\""];
    let place =
        ["run", "-d", "--name", "one", "-b", dock.engine_name(), "--image", IMAGE, "--network", "none"];
    let words = [&place[..], &options, &["--", "sh", "-c", script]].concat();
    let ran = dock.command(&words).env("MY_KEY", "hunter-two").output().expect("wharf runs");
    assert!(ran.status.success(), "{ran:?}");
    let runs = || String::from_utf8_lossy(&dock.wharf.log("one")).matches("10 and 10 long").count();
    assert!(until(|| runs() == 1), "{}", String::from_utf8_lossy(&dock.wharf.log("one")));
    assert!(!dock.ok(&["show", "one", "--json"]).contains("hunter-two"));
    // The next container of the same session has them too, and the last takes them along.
    dock.ok(&["signal", "one", "KILL"]);
    assert!(until(|| runs() == 2), "{}", String::from_utf8_lossy(&dock.wharf.log("one")));
    let secrets = dock.wharf.state().join("names/one/secrets");
    assert!(secrets.exists());
    dock.ok(&["kill", "one"]);
    assert!(until(|| !secrets.exists()));
}

fn what_comes_and_goes_by_the_network_is_counted(dock: &Dock) {
    let of = |name: &str| -> Value {
        let stats: Value = serde_json::from_str(&dock.ok(&["stats", name, "--json"])).expect("JSON");
        stats[0].clone()
    };
    // A network of its own with nothing in it: none came, and that is known.
    dock.start(
        "own",
        &[],
        &["sh", "-c", "dd if=/dev/zero of=/tmp/made bs=1M count=8 conv=fsync; echo made; sleep 600"],
    );
    dock.wharf.until_log("own", "made");
    let used = of("own");
    assert_eq!((&used["network"]["received"], &used["network"]["sent"]), (&0.into(), &0.into()), "{used}");
    assert!(used["io"]["written"].is_u64(), "{used}");
    // The host's is not the session's.
    let host =
        ["run", "-d", "--name", "shared", "-b", dock.engine_name(), "--image", IMAGE, "--network", "host"];
    dock.ok(&[&host[..], &["--", "sleep", "600"]].concat());
    assert_eq!(of("shared")["network"], Value::Null);
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
    let ran = dock.run(&["run", "-d", "-v", ".:/elsewhere", "--", "true"]);
    assert_eq!(ran.code, 6, "a volume without an image: {ran:#?}");
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

fn what_was_asked_for_is_so_inside(dock: &Dock) {
    let network = format!("wharf-test-{}", std::process::id());
    dock.engine(&["network", "create", &network]);
    let place = ["run", "-d", "--name", "open", "-b", dock.backend(), "--image", IMAGE];
    let asked = ["--network", &network, "--host-gateway", "--user", "1234:1234", "--group-add", "4242"];
    let script = "id -u; id -G; cat /etc/hosts /proc/net/dev; echo said; exec cat";
    dock.ok(&[&place[..], &asked, &["--", "sh", "-c", script]].concat());
    dock.start("closed", &[], &["sh", "-c", "cat /proc/net/dev; echo said; exec cat"]);
    let said = |name: &str| {
        dock.wharf.until_log(name, "said");
        String::from_utf8_lossy(&dock.wharf.log(name)).into_owned()
    };
    let open = said("open");
    let words = |row: usize| open.lines().nth(row).unwrap_or_default().split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(0), ["1234"], "{open}");
    assert!(words(1).contains(&"4242"), "{open}");
    assert!(open.contains("host.docker.internal"), "{open}");
    assert!(open.contains("eth0:"), "{open}");
    let closed = said("closed");
    assert!(closed.contains("lo:") && !closed.contains("eth0:"), "{closed}");
    let id = dock.wharf.json(&["show", "open", "--json"])["id"].as_str().expect("an id").to_owned();
    let networks =
        dock.engine(&["inspect", "-f", "{{json .NetworkSettings.Networks}}", &format!("wharf-{id}")]);
    assert!(networks.contains(&network), "{networks}");
    dock.ok(&["kill", "open", "closed"]);
    dock.must_be_empty();
    dock.engine(&["network", "rm", &network]);
}

fn orphans_inside_are_reaped(dock: &Dock) {
    dock.start("one", &[], &["sh", "-c", "for i in 1 2 3 4 5; do (sleep 0.2 &); done; echo up; exec cat"]);
    dock.wharf.until_log("one", "up");
    // Their parents are gone. One whose end nobody notes would stay in the list.
    let list = || dock.ok(&["exec", "one", "--", "sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null; true"]);
    assert!(until(|| !list().contains("(sleep)")), "{}", list());
}
