//! Tests the limits on memory, processors and processes where cgroups enforce them.

use wharf_backend::conformance::left_out;

use crate::support::{Wharf, until};
use crate::tools::{MARK, marked, pid, show};

/// Leaves a test out where limits are not in force. There they are refused, and no session is left.
pub(crate) fn need_limits() {
    let wharf = Wharf::new();
    let ran = wharf.run(&["run", "-d", "--memory", "64m", "--cpus", "1", "--pids", "9", "--", "true"]);
    if ran.code == 6 {
        assert!(ran.err.contains("hint: "), "{ran:#?}");
        assert_eq!(wharf.ok(&["ls", "-q"]), "", "a refused limit leaves a session");
        // What follows ends this process, and nothing else would end the daemon.
        drop(wharf);
        left_out("no cgroup enforces limits here");
    }
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn a_memory_bomb_is_ended_and_told() {
    need_limits();
    let wharf = Wharf::new();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    let eat = "my @a; while (1) { push @a, 'x' x (1 << 20) }";
    wharf.start("bomb", &["--memory", "64m"], &["perl", "-e", eat]);
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "bomb"]).code, 137);
    let session = show(&wharf, "bomb");
    assert_eq!((&session["exit"]["oom"], &session["exit"]["signal"]), (&true.into(), &9.into()), "{session}");
    assert!(wharf.ok(&["show", "bomb"]).contains("out of memory"));
    // A shell that outlives what was killed hands on its code; it was for want of memory all the same.
    wharf.start(
        "below",
        &["--memory", "64m"],
        &["sh", "-c", &format!("perl -e '{}'; exit $?", eat.replace('\'', "\""))],
    );
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "below"]).code, 137);
    assert_eq!(show(&wharf, "below")["exit"]["oom"], true);
    // One that was asked to end, or ended well, was not ended by that.
    wharf.start("calm", &["--memory", "64m"], &["true"]);
    assert_eq!(wharf.run(&["wait", "calm"]).code, 0);
    assert_eq!(show(&wharf, "calm")["exit"]["oom"], false);
    assert!(crate::support::is_live(&show(&wharf, "neighbour")));
}

#[test]
fn a_child_that_is_killed_for_want_of_memory_is_told_and_the_command_lives_on() {
    need_limits();
    let wharf = Wharf::new();
    let eat = "my @a; while (1) { push @a, q(x) x (1 << 20) }";
    let script =
        format!("perl -e '{eat}'; echo first; read -r line; perl -e '{eat}'; echo second; exec sleep 1000");
    wharf.start("one", &["--memory", "64m"], &["sh", "-c", &script]);
    let told = || {
        let text = wharf.ok(&["events", "one", "--kind", "oom", "--json"]);
        let kills =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["data"]["kills"].clone();
        text.lines().map(kills).collect::<Vec<_>>()
    };
    wharf.until_log("one", "first");
    assert!(until(|| told() == [1]), "{:?}", told());
    assert!(crate::support::is_live(&show(&wharf, "one")));
    // What another daemon finds counted was told already; the next is news.
    wharf.kill_daemon();
    wharf.ok(&["write", "one", "go\n"]);
    wharf.until_log("one", "second");
    assert!(until(|| told() == [1, 2]), "{:?}", told());
    assert!(crate::support::is_live(&show(&wharf, "one")));
}

#[test]
fn processors_are_limited() {
    need_limits();
    let wharf = Wharf::new();
    // A busy loop counts its own processor time against the wall's.
    let busy = r#"use Time::HiRes 'time'; my $w = time; 1 while time - $w < 1.5; my @t = times; printf "%.2f\n", $t[0] + $t[1];"#;
    wharf.start("one", &["--no-tty", "--cpus", "0.2"], &["perl", "-e", busy]);
    assert_eq!(wharf.run(&["wait", "--timeout", "20", "one"]).code, 0);
    let used: f64 = String::from_utf8(wharf.log("one")).unwrap().trim().parse().unwrap();
    assert!(used < 0.7, "{used} s of 1.5 s on a fifth of a processor");
}

#[test]
fn processes_are_limited() {
    need_limits();
    let wharf = Wharf::new();
    let mark = format!("pids-{}", std::process::id());
    let script = r#"$| = 1; my $n = 0; for (1..50) { my $p = fork(); last if !defined $p; if (!$p) { sleep 1000; exit } $n++ } print "born $n\n"; sleep 1000"#;
    wharf.start("one", &["--pids", "20", "-e", &format!("{MARK}={mark}")], &["perl", "-e", script]);
    wharf.until_log("one", "born 19");
    assert_eq!(marked(&mark).len(), 20);
    // Further commands count, and are refused by the kernel and not by a hang.
    let ran = wharf.run(&["exec", "one", "sh", "-c", "sleep 0 & wait $!"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(crate::support::is_live(&show(&wharf, "one")));
    assert!(pid(&wharf, "one") > 0);
    wharf.ok(&["stop", "-t", "0.2", "one"]);
    assert!(until(|| marked(&mark).is_empty()));
}
