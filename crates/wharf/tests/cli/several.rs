//! Several names at once: one that is bad stops nothing for the others, and the code is the first failure's.

use serde_json::Value;
use wharf_backend::conformance::left_out;

use crate::support::{Ran, Wharf, is_live, until};

/// No session is called this.
const MISSING: &str = "no-such-session";

fn show(wharf: &Wharf, name: &str) -> Value {
    serde_json::from_str(&wharf.run(&["show", name, "--json"]).out).unwrap_or_default()
}

fn ended(wharf: &Wharf, name: &str) -> bool {
    show(wharf, name)["state"] == "exited"
}

fn started_again(wharf: &Wharf, name: &str) -> bool {
    let session = show(wharf, name);
    session["run"] == 2 && is_live(&session)
}

fn removed(wharf: &Wharf, name: &str) -> bool {
    wharf.run(&["show", name]).code == 3
}

fn got(wharf: &Wharf, name: &str, text: &str) -> bool {
    String::from_utf8_lossy(&wharf.log(name)).contains(text)
}

/// What was pressed comes out of a session so that it can be read.
const SHOWS_KEYS: &str = "stty raw -echo; echo ready; exec cat -v";
const SLEEPS: &str = "echo ready; exec sleep 1000";

/// What a verb did to a session.
type Did = fn(&Wharf, &str) -> bool;

/// What stands before the names and behind them, what the sessions run, and what was done to those that there are.
const VERBS: &[(&[&str], &[&str], &str, Did)] = &[
    (&["stop", "-t", "5"], &[], SLEEPS, ended),
    (&["kill"], &[], SLEEPS, ended),
    (&["kill", "--json"], &[], SLEEPS, ended),
    (&["signal"], &["TERM"], SLEEPS, ended),
    (&["signal", "--tree"], &["KILL"], SLEEPS, ended),
    (&["restart", "-t", "5"], &[], SLEEPS, started_again),
    (&["rm", "--force"], &[], SLEEPS, removed),
    (&["interrupt"], &[], SHOWS_KEYS, |wharf, name| got(wharf, name, "^C")),
    (&["escape"], &[], SHOWS_KEYS, |wharf, name| got(wharf, name, "^[")),
];

#[test]
fn one_bad_name_among_several_stops_nothing_for_the_others() {
    let wharf = Wharf::on_this_host();
    for (index, (verb, end, script, did)) in VERBS.iter().enumerate() {
        let [first, last] = ["a", "b"].map(|word| format!("{word}{index}"));
        for name in [&first, &last] {
            wharf.start(name, &[], &["sh", "-c", script]);
            wharf.until_log(name, "ready");
        }
        let ran = wharf.run(&[verb, &[first.as_str(), MISSING, &last][..], end].concat());
        assert_eq!(ran.code, 3, "{verb:?}: {ran:#?}");
        for name in [&first, &last] {
            let shown = || (show(&wharf, name), String::from_utf8_lossy(&wharf.log(name)).into_owned());
            assert!(until(|| did(&wharf, name)), "{verb:?} of {name}: {:#?}", shown());
        }
        assert!(ran.err.contains(MISSING) || ran.out.contains(MISSING), "{verb:?}: {ran:#?}");
    }
}

#[test]
fn of_several_failures_the_first_is_the_code() {
    let wharf = Wharf::on_this_host();
    for name in ["over", "twice"] {
        wharf.start(name, &[], &["sh", "-c", "exit 9"]);
        assert_eq!(wharf.run(&["wait", name]).code, 9);
    }
    for verb in [&["signal"][..], &["interrupt"], &["escape"]] {
        for (names, code) in [(["over", MISSING], 4), ([MISSING, "over"], 3)] {
            let name = format!("c-{}-{code}", verb[0]);
            wharf.start(&name, &[], &["sh", "-c", SHOWS_KEYS]);
            wharf.until_log(&name, "ready");
            let end: &[&str] = if verb[0] == "signal" { &["KILL"] } else { &[] };
            let ran = wharf.run(&[verb, &names[..], &[name.as_str()], end].concat());
            assert_eq!(ran.code, code, "{verb:?} {names:?}: {ran:#?}");
            let done = || got(&wharf, &name, "^") || ended(&wharf, &name);
            assert!(until(done), "{verb:?}: {}", show(&wharf, &name));
        }
    }
    for (names, code) in [(["over", MISSING], 9), ([MISSING, "over"], 3)] {
        assert_eq!(wharf.run(&[&["wait"], &names[..]].concat()).code, code, "{names:?}");
    }
}

#[test]
fn one_bad_name_among_several_hides_no_row_of_the_others() {
    let wharf = Wharf::on_this_host();
    for name in ["one", "two"] {
        wharf.start(name, &["-g", "team"], &["sleep", "1000"]);
    }
    let names = ["one", MISSING, "two", "one"];
    let asked = |verb: &[&str]| -> Ran {
        let ran = wharf.run(&[verb, &names].concat());
        assert_eq!(ran.code, 3, "{verb:?}: {ran:#?}");
        assert!(ran.err.contains(MISSING), "{verb:?}: {ran:#?}");
        ran
    };
    for verb in [
        &["ls"][..],
        &["ls", "-q"],
        &["ls", "--running"],
        &["ls", "--group", "team"],
        &["stats"],
        &["top", "--once"],
    ] {
        let ran = asked(verb);
        for name in ["one", "two"] {
            let rows = ran.out.lines().filter(|line| line.split_whitespace().next() == Some(name));
            assert_eq!(rows.count(), 1, "{verb:?}: {ran:#?}");
        }
    }
    for verb in [&["ls", "--json"][..], &["ls", "--json", "--running"], &["stats", "--json"]] {
        let ran = asked(verb);
        let rows: Value = serde_json::from_str(&ran.out).expect("JSON");
        let rows: Vec<&str> =
            rows.as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(rows, ["one", "two"], "{verb:?}: {ran:#?}");
    }
    // Where none is there, nothing is printed.
    for verb in [&["ls"][..], &["ls", "--json"], &["stats"], &["stats", "--json"], &["top", "--once"]] {
        let ran = wharf.run(&[verb, &[MISSING, "neither"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{verb:?}: {ran:#?}");
    }
    let ran = wharf.run(&["ls", "--group", "no-such-group", "one", MISSING]);
    assert!(ran.code == 3 && ran.out.is_empty() && ran.err.contains("there is no group"), "{ran:#?}");
}

#[test]
fn one_bad_message_among_several_keeps_no_other_from_being_withdrawn() {
    let wharf = Wharf::on_this_host();
    wharf.start("one", &[], &["bash", "--norc"]);
    wharf.ok(&["send", "one", "sleep 1000", "--wait=submitted"]);
    wharf.ok(&["wait", "one", "--until", "working", "--timeout", "20"]);
    let ids =
        ["echo x", "echo y"].map(|text| wharf.ok(&["send", "one", text, "--no-wait"]).trim().to_owned());
    let ran = wharf.run(&["cancel", &ids[0], "no-such-message", &ids[1]]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(ran.out, format!("{} cancelled\n{} cancelled\n", ids[0], ids[1]), "{ran:#?}");
}

#[test]
fn one_bad_name_among_several_that_are_paused_stops_nothing_for_the_others() {
    let wharf = Wharf::on_this_host();
    for name in ["one", "two"] {
        wharf.start(name, &[], &["sleep", "1000"]);
    }
    let paused = |name: &str| show(&wharf, name)["paused"] == true;
    let ran = wharf.run(&["pause", "one", MISSING, "two"]);
    if ran.err.contains("does not support pausing") {
        left_out("sessions cannot be paused here: there is no control group for them");
    }
    assert_eq!((ran.code, ran.out.as_str()), (3, "one paused\ntwo paused\n"), "{ran:#?}");
    assert!(paused("one") && paused("two"));
    let ran = wharf.run(&["unpause", "one", MISSING, "two"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(!paused("one") && !paused("two"), "{ran:#?}");
}
