//! A container that somebody else started is watched and typed at, and never owned.

use crate::dock::{Dock, on_both};
use crate::support::{is_live, until};

on_both! {
    a_terminal_is_typed_at_and_ends_as_the_container_does
    pipes_are_told_apart_and_let_go
    what_reads_nothing_is_only_watched
    only_what_is_named_is_taken_in
    it_goes_on_without_a_daemon_and_without_its_holder
}

fn a_terminal_is_typed_at_and_ends_as_the_container_does(dock: &Dock) {
    let script = "stty -echo; echo before; read -r line; echo got $line; read -r x; stty size; exit 5";
    let theirs = dock.foreign(&["-i", "-t"], script);
    // Its own log has it by now, so it is in the past.
    assert!(until(|| dock.engine(&["logs", &theirs.name]).contains("before")));
    assert_eq!(dock.ok(&["adopt", &theirs.place, "--name", "guest"]), "guest\n");
    dock.wharf.until_log("guest", "before");
    let shown = dock.wharf.json(&["show", "guest", "--json"]);
    assert_eq!(shown["guest"], theirs.place.as_str(), "{shown}");
    assert_eq!(shown["tty"], true, "{shown}");
    assert!(shown["isolation"].as_str().is_some_and(|text| text.contains("somebody else")), "{shown}");
    dock.ok(&["write", "guest", "hello\n"]);
    dock.wharf.until_log("guest", "got hello");
    let refused = dock.run(&["exec", "guest", "--", "true"]);
    assert_eq!(refused.code, 6, "{refused:?}");
    dock.ok(&["write", "guest", "\n"]);
    assert_eq!(dock.run(&["wait", "guest"]).code, 5);
    let log = String::from_utf8(dock.wharf.log("guest")).expect("UTF-8");
    assert_eq!(log.matches("before").count(), 1, "{log}");
    assert_eq!(dock.engine(&["inspect", "-f", "{{.State.ExitCode}}", &theirs.name]), "5");
}

fn pipes_are_told_apart_and_let_go(dock: &Dock) {
    let script =
        "echo out; echo err >&2; while read -r line; do echo \"<$line>\"; done; echo over; sleep 600";
    let theirs = dock.foreign(&["-i"], script);
    dock.ok(&["adopt", &theirs.place, "--name", "guest"]);
    dock.wharf.until_log("guest", "out");
    dock.wharf.until_log("guest", "err");
    let shown = dock.wharf.json(&["show", "guest", "--json"]);
    assert_eq!(shown["tty"], false, "{shown}");
    // Podman ends the input of what it lets go of, so there it is only watched.
    let typed = |text: &str| {
        let ran = dock.run(&["write", "guest", text]);
        if theirs.place.starts_with("podman") {
            assert!(ran.code == 6 && ran.err.contains("would end"), "{ran:?}");
        } else {
            assert_eq!(ran.code, 0, "{ran:?}");
            dock.wharf.until_log("guest", &format!("<{}>", text.trim()));
        }
    };
    typed("one\n");
    dock.ok(&["stop", "guest"]);
    let shown = dock.wharf.json(&["show", "guest", "--json"]);
    assert_eq!(
        (&shown["exit"]["reason"], &shown["exit"]["signal"]),
        (&"stopped".into(), &().into()),
        "{shown}"
    );
    assert!(theirs.runs(), "it is let go, and lives on");
    // Once more, and only what is new comes.
    dock.ok(&["restart", "guest"]);
    typed("two\n");
    // A signal is the way to ask for more.
    dock.ok(&["signal", "guest", "KILL"]);
    assert_eq!(dock.run(&["wait", "guest"]).code, 137);
    let log = String::from_utf8(dock.wharf.log("guest")).expect("UTF-8");
    assert_eq!((log.matches("out\n").count(), log.matches("over").count()), (1, 0), "{log}");
    assert!(log.matches("<one>").count() <= 1, "{log}");
    assert!(!theirs.runs());
}

fn what_reads_nothing_is_only_watched(dock: &Dock) {
    let theirs = dock.foreign(&[], "trap 'exit 143' TERM; echo here; sleep 600 & wait");
    dock.ok(&["adopt", &theirs.place, "--name", "guest"]);
    dock.wharf.until_log("guest", "here");
    let refused = dock.run(&["write", "guest", "x"]);
    assert!(refused.code == 6 && refused.err.contains("without -i"), "{refused:?}");
    let sent = dock.run(&["send", "guest", "hello", "--timeout", "20"]);
    assert_ne!(sent.code, 0, "{sent:?}");
    dock.engine(&["rm", "-f", &theirs.name]);
    // Docker kills what it removes, Podman asks it first.
    let code = dock.run(&["wait", "guest"]).code;
    assert!(matches!(code, 137 | 143), "somebody removed it: {code}");
    std::mem::forget(theirs);
}

fn only_what_is_named_is_taken_in(dock: &Dock) {
    let theirs = dock.foreign(&[], "exit 3");
    let refused = dock.run(&["adopt", &theirs.place[..theirs.place.len() - 1]]);
    assert_eq!(refused.code, 3, "the beginning of a name is no name: {refused:?}");
    let id = dock.engine(&["inspect", "-f", "{{.Id}}", &theirs.name]);
    let flavour = theirs.place.split(':').next().expect("a flavour");
    let refused = dock.run(&["adopt", &format!("{flavour}:{}", &id[..6])]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(until(|| !theirs.runs()));
    let refused = dock.run(&["adopt", &format!("{flavour}:{id}")]);
    assert!(refused.code == 4 && refused.err.contains("does not run"), "{refused:?}");
    dock.start("own", &[], &["sleep", "600"]);
    let own = dock.wharf.json(&["show", "own", "--json"])["id"].as_str().expect("an id").to_owned();
    let refused = dock.run(&["adopt", &format!("{flavour}:wharf-{own}")]);
    assert_eq!(refused.code, 2, "{refused:?}");
    dock.ok(&["kill", "own"]);
    dock.must_be_empty();
}

fn it_goes_on_without_a_daemon_and_without_its_holder(dock: &Dock) {
    let script = "stty -echo; i=0; while read -r line; do i=$((i + 1)); echo \"$i <$line>\"; test $i -lt 3 || exit 4; done";
    let theirs = dock.foreign(&["-i", "-t"], script);
    dock.ok(&["adopt", &theirs.place, "--name", "guest"]);
    dock.wharf.kill_daemon();
    dock.ok(&["write", "guest", "one\n"]);
    dock.wharf.until_log("guest", "1 <one>");
    let shown = || dock.wharf.json(&["show", "guest", "--json"]);
    assert!(until(|| is_live(&shown())), "{}", shown());
    let ticket = dock.wharf.state().join("names/guest/ticket.json");
    let holder = || -> i64 {
        let ticket: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&ticket).expect("a ticket")).expect("JSON");
        ticket["holder"]["pid"].as_i64().expect("a pid")
    };
    let first = holder();
    crate::support::kill(first as i32);
    assert!(until(|| holder() != first && is_live(&shown())), "{}", shown());
    dock.ok(&["write", "guest", "two\n"]);
    dock.wharf.until_log("guest", "2 <two>");
    dock.ok(&["write", "guest", "three\n"]);
    assert_eq!(dock.run(&["wait", "guest"]).code, 4);
    let log = String::from_utf8(dock.wharf.log("guest")).expect("UTF-8");
    assert_eq!((log.matches("1 <one>").count(), log.matches("3 <three>").count()), (1, 1), "{log}");
}
