//! Tests restarts, timeouts, `--after` and port reservation with real commands.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{Wharf, until};
use crate::tools::{send, show, within};

fn stamps(wharf: &Wharf, name: &str) -> Vec<u64> {
    let log = String::from_utf8(wharf.log(name)).unwrap();
    log.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

#[test]
fn a_failing_command_is_started_again_with_growing_waits_up_to_a_cap() {
    let wharf = Wharf::new();
    let options = ["--restart", "on-failure", "--restart-max", "2"];
    wharf.start("one", &options, &["sh", "-c", "date +%s%3N; exit 7"]);
    // Between two runs it says what it waits for, and is not over.
    let waits = || {
        let session = show(&wharf, "one");
        session["detail"].as_str().is_some_and(|detail| detail.contains("restart 1 in"))
            && session["state"] != "exited"
    };
    assert!(until(waits), "{}", show(&wharf, "one"));
    assert_eq!(wharf.run(&["wait", "one"]).code, 7, "the end is the end of the last run");
    let session = show(&wharf, "one");
    assert_eq!((&session["run"], &session["state"]), (&3.into(), &"exited".into()), "{session}");
    assert!(wharf.ok(&["show", "one"]).contains("3, restart on-failure"));
    let stamps = stamps(&wharf, "one");
    let gaps: Vec<u64> = stamps.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.len(), 2, "{stamps:?}");
    // Half to all of 500 ms, then of 1 s, and a little for the start itself.
    assert!((245..900).contains(&gaps[0]) && (495..1_500).contains(&gaps[1]), "{gaps:?}");
}

#[test]
fn success_is_not_restarted_on_failure_and_a_stop_is_never() {
    let wharf = Wharf::new();
    wharf.start("good", &["--restart", "on-failure"], &["true"]);
    assert_eq!(wharf.run(&["wait", "good"]).code, 0);
    assert_eq!(show(&wharf, "good")["run"], 1);
    wharf.start("always", &["--restart", "always"], &["sh", "-c", "echo up; read x"]);
    wharf.ok(&["keys", "always", "Enter"]);
    assert!(until(|| show(&wharf, "always")["run"] == 2), "{}", show(&wharf, "always"));
    assert!(until(|| crate::support::is_live(&show(&wharf, "always"))));
    wharf.ok(&["stop", "-t", "1", "always"]);
    let session = show(&wharf, "always");
    assert_eq!((&session["state"], &session["run"]), (&"exited".into(), &2.into()));
    // A stop between two runs ends it as well.
    wharf.start("between", &["--restart", "always"], &["false"]);
    let waits = || show(&wharf, "between")["state"] == "starting";
    assert!(until(waits), "{}", show(&wharf, "between"));
    within(Duration::from_secs(1), "a stop", || wharf.ok(&["stop", "between"]));
    let run = show(&wharf, "between")["run"].clone();
    assert_eq!(show(&wharf, "between")["state"], "exited");
    // A daemon that comes afterwards does not think otherwise.
    wharf.kill_daemon();
    assert_eq!(show(&wharf, "between")["state"], "exited");
    assert_eq!(show(&wharf, "between")["run"], run);
    assert_eq!(show(&wharf, "always")["run"], 2);
}

#[test]
fn a_restart_policy_outlives_the_daemon() {
    let wharf = Wharf::new();
    wharf.start("one", &["--restart", "always"], &["sleep", "1000"]);
    let pid = show(&wharf, "one")["pid"].as_i64().unwrap() as i32;
    wharf.kill_daemon();
    send(pid, rustix::process::Signal::KILL);
    let again = || {
        let session = show(&wharf, "one");
        session["run"] == 2 && crate::support::is_live(&session)
    };
    assert!(until(again), "{}", show(&wharf, "one"));
    assert_ne!(show(&wharf, "one")["pid"], pid);
}

#[test]
fn run_and_idle_timeouts_say_their_reasons() {
    let wharf = Wharf::new();
    wharf.start(
        "run",
        &["--run-timeout", "500ms", "--grace", "200ms"],
        &["sh", "-c", "while :; do echo x; sleep 0.05; done"],
    );
    wharf.start(
        "idle",
        &["--idle-timeout", "500ms"],
        &["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.1; done; sleep 1000"],
    );
    wharf.run(&["wait", "--timeout", "20", "run"]);
    let exit = show(&wharf, "run")["exit"].clone();
    assert_eq!(exit["reason"], "timeout", "{exit}");
    assert!(wharf.ok(&["show", "run"]).contains("run timeout"));
    wharf.run(&["wait", "--timeout", "20", "idle"]);
    let exit = show(&wharf, "idle")["exit"].clone();
    assert_eq!(exit["reason"], "idle", "{exit}");
    // It was not idle while it printed.
    assert!(String::from_utf8_lossy(&wharf.log("idle")).contains("10\r\n"));
    let lasted = exit["ended"].as_u64().unwrap() - exit["started"].as_u64().unwrap();
    assert!((1_400..4_000).contains(&lasted), "{lasted} ms");
}

#[test]
fn what_comes_after_waits_and_knows_what_for() {
    let wharf = Wharf::new();
    wharf.start("first", &["--no-tty"], &["sh", "-c", "read x; exit $x"]);
    for (name, after) in [("exit", "first:exit"), ("success", "first:success"), ("chain", "exit:success")] {
        wharf.start(name, &["--after", after], &["sh", "-c", "echo ran"]);
        assert_eq!(show(&wharf, name)["state"], "starting");
        let ran = wharf.run(&["write", name, "x"]);
        assert_eq!(ran.code, 4, "{ran:#?}");
        assert!(ran.err.contains("does not run yet"), "{ran:#?}");
        assert_eq!(wharf.run(&["attach", name]).code, 4);
    }
    // Also through another daemon.
    wharf.kill_daemon();
    assert_eq!(show(&wharf, "chain")["state"], "starting");
    wharf.ok(&["write", "first", "3\n"]);
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "exit"]).code, 0);
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "chain"]).code, 0);
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "success"]).code, 125);
    let session = show(&wharf, "success");
    assert_eq!(session["exit"]["reason"], "failed", "{session}");
    assert_eq!(wharf.log("exit"), b"ran\r\n");
    assert_eq!(wharf.log("success"), b"");
    let missing = wharf.run(&["run", "-d", "--name", "lonely", "--after", "nobody", "--", "true"]);
    assert_eq!(missing.code, 3, "{missing:#?}");
    assert_eq!(wharf.run(&["show", "lonely"]).code, 3);
}

#[test]
fn twenty_sessions_at_once_get_twenty_ports() {
    let wharf = Wharf::new();
    wharf.start("first", &[], &["true"]);
    let start = |n: usize| {
        let name = format!("s{n}");
        wharf.start(&name, &["--no-tty", "-p", "auto"], &["sh", "-c", "printf %s $PORT; read x"]);
    };
    std::thread::scope(|scope| {
        for n in 0..20 {
            scope.spawn(move || start(n));
        }
    });
    let mut ports = BTreeSet::new();
    for n in 0..20 {
        let name = format!("s{n}");
        let port = show(&wharf, &name)["ports"][0]["number"].as_u64().unwrap();
        wharf.until_log(&name, &port.to_string());
        assert!(ports.insert(port), "{port} was given twice");
    }
}
