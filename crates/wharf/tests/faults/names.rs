//! Names that are hostile, alike, unknown or used again.

use std::process::Stdio;

use crate::ground::Ground;
use crate::support::{Ran, lives};

fn hostile() -> Vec<String> {
    let list = [
        "",
        ".",
        "..",
        "/",
        "-rf",
        "a\nb",
        "$(x)",
        "#(x)",
        "=x",
        "a.b:c",
        "🚢",
        "a b",
        "../x",
        "a/b",
        "/etc/passwd",
        "-",
        "--",
        "--all",
        "\u{202e}abc",
        "a\tb",
        "*",
        "~",
        "%2e%2e",
        "a\\b",
        "\x1b[2J",
        ".hidden",
        "é",
        "a\r",
    ];
    list.iter().map(ToString::to_string).chain(["x".repeat(65), "x".repeat(4096)]).collect()
}

#[test]
fn hostile_names_are_refused_everywhere_and_leave_nothing() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let before = std::fs::read_dir(ground.state()).unwrap().count();
    for name in hostile() {
        // As one word, so that it is the option's value whatever it begins with.
        for option in [format!("--name={name}"), format!("--group={name}")] {
            let ran = ground.run(&["run", "-d", &option, "--", "true"]);
            assert_eq!(ran.code, 2, "{option:?}: {ran:#?}");
            assert!(!ran.err.contains('\x1b') && !ran.err.contains('\u{202e}'), "{option:?}: {:?}", ran.err);
        }
        for verb in ["show", "logs", "attach", "stop", "kill", "rm", "wait", "restart", "env", "stats"] {
            let ran = ground.run(&[verb, "--", &name]);
            assert!(matches!(ran.code, 2 | 3), "{verb} {name:?}: {ran:#?}");
            assert!(!ran.err.contains("panicked"), "{ran:#?}");
        }
        let ran = ground.run(&["rename", "--", "one", &name]);
        assert_eq!(ran.code, 2, "{name:?}: {ran:#?}");
        let ran = ground.run(&["write", "--", &name, "text"]);
        assert!(matches!(ran.code, 2 | 3), "{name:?}: {ran:#?}");
    }
    assert_eq!(ground.ok(&["ls", "-q"]), "one\n");
    assert_eq!(std::fs::read_dir(ground.state()).unwrap().count(), before);
    assert_eq!(std::fs::read_dir(ground.state().join("names")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(ground.state().join("sessions")).unwrap().count(), 1);
}

#[test]
fn a_name_that_is_the_start_of_others_means_itself_alone() {
    let ground = Ground::new();
    let names = ["a", "a-1", "a-10", "a-100", "a.1", "a_1", "aa"];
    let start = |name: &str| ground.start(name, &["-g", name], &["sleep", "1000"]);
    for name in names {
        start(name);
    }
    let running = || {
        let mut names: Vec<String> =
            ground.ok(&["ls", "-q", "--running"]).lines().map(str::to_owned).collect();
        names.sort();
        names
    };
    let without = |gone: &[&str]| {
        let mut left: Vec<String> =
            names.iter().filter(|name| !gone.contains(name)).map(ToString::to_string).collect();
        left.sort();
        left
    };
    ground.ok(&["kill", "a"]);
    assert_eq!(running(), without(&["a"]));
    ground.ok(&["stop", "-t", "1", "a-1"]);
    assert_eq!(running(), without(&["a", "a-1"]));
    ground.ok(&["kill", "--group", "a.1"]);
    assert_eq!(running(), without(&["a", "a-1", "a.1"]));
    ground.ok(&["rm", "-f", "a-10"]);
    assert_eq!(running(), without(&["a", "a-1", "a.1", "a-10"]));
    ground.ok(&["rename", "a_1", "a-"]);
    assert_eq!(ground.run(&["show", "a_1"]).code, 3);
    assert!(crate::support::is_live(&ground.show("a-")));
    assert!(crate::support::is_live(&ground.show("a-100")));
    // A prefix of a name is no name.
    for verb in ["kill", "stop", "rm", "show", "logs", "wait"] {
        assert_eq!(ground.run(&[verb, "a-10"]).code, 3, "{verb}");
    }
    assert_eq!(ground.run(&["kill", "A-100"]).code, 3);
}

#[test]
fn names_that_differ_in_case_are_different() {
    let ground = Ground::new();
    for (name, text) in [("Agent", "upper"), ("agent", "lower"), ("AGENT", "all")] {
        ground.start(name, &[], &["sh", "-c", &format!("echo {text}; read x")]);
    }
    ground.until_log("Agent", "upper");
    ground.until_log("agent", "lower");
    ground.ok(&["kill", "agent"]);
    let states = ground.states();
    assert_eq!((&*states["Agent"], &*states["agent"], &*states["AGENT"]), ("running", "exited", "running"));
}

#[test]
fn the_name_of_an_ended_session_can_be_used_again_and_of_a_live_one_cannot() {
    let ground = Ground::new();
    for round in 0..3 {
        ground.start("one", &[], &["sh", "-c", &format!("echo round{round}; read x; exit {round}")]);
        ground.until_log("one", &format!("round{round}"));
        let again = ground.run(&["run", "-d", "--name", "one", "--", "true"]);
        assert_eq!(again.code, 4, "{again:#?}");
        ground.ok(&["write", "one", "\r"]);
        assert_eq!(ground.run(&["wait", "one"]).code, round);
        assert!(!String::from_utf8_lossy(&ground.log("one")).contains(&format!("round{}", round - 1)));
        if round == 1 {
            ground.kill_daemon();
        }
    }
    // Each of them is in the history with its own code, and only the last has the name.
    let list = ground.json(&["ls", "--json"]);
    let codes: Vec<_> =
        list.as_array().unwrap().iter().map(|session| session["exit"]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(0), Some(1), Some(2)], "{list}");
    assert_eq!(ground.show("one")["exit"]["code"], 2);
}

#[test]
fn of_many_that_want_one_name_exactly_one_gets_it() {
    let ground = Ground::new();
    ground.ok(&["daemon", "start"]);
    for round in 0..5 {
        let name = format!("only-{round}");
        let all: Vec<_> = (0..8)
            .map(|_| {
                let mut command = ground.command(&["run", "-d", "--name", &name, "--", "sleep", "1000"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("wharf runs")
            })
            .collect();
        let ran: Vec<Ran> = all.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
        assert_eq!(ran.iter().filter(|ran| ran.code == 0).count(), 1, "{ran:#?}");
        assert_eq!(ran.iter().filter(|ran| ran.code == 4).count(), 7, "{ran:#?}");
    }
    assert_eq!(ground.states().len(), 5);
    let pids: Vec<i32> = (0..5).map(|round| ground.pid(&format!("only-{round}"))).collect();
    assert!(pids.into_iter().all(lives));
}

#[test]
fn unknown_names_are_code_3() {
    let ground = Ground::new();
    ground.ok(&["daemon", "start"]);
    for args in [
        &["show", "x"][..],
        &["logs", "x"],
        &["attach", "x"],
        &["keys", "x", "Enter"],
        &["write", "x", "y"],
        &["interrupt", "x"],
        &["escape", "x"],
        &["signal", "x", "TERM"],
        &["stop", "x"],
        &["kill", "x"],
        &["rm", "x"],
        &["rename", "x", "y"],
        &["restart", "x"],
        &["wait", "x"],
        &["exec", "x", "--", "true"],
        &["env", "x"],
        &["stats", "x"],
        &["pipe", "x", "file"],
        &["record", "export", "x"],
    ] {
        let ran = ground.run(args);
        assert_eq!(ran.code, 3, "{args:?}: {ran:#?}");
        assert!(ran.err.contains("hint: "), "{args:?}: {ran:#?}");
    }
}
