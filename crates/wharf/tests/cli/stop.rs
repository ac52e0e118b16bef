//! Tests `wharf stop`, `signal`, `restart` and `gc`, and how they select sessions.

use crate::support::{Wharf, lives, until};

#[test]
fn a_stop_ends_the_whole_tree_and_says_how() {
    // A container's numbers of processes are not this host's.
    let wharf = Wharf::on_this_host();
    let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid; while :; do sleep 0.05; done' & \
                  while :; do sleep 0.05; done";
    wharf.start("one", &[], &["sh", "-c", script]);
    let file = wharf.home().join("pid");
    let read = || std::fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok();
    assert!(until(|| read().is_some()), "the hostile child never ran");
    let child = read().unwrap();
    let said = wharf.ok(&["stop", "-t", "0.2", "one"]);
    assert!(said.starts_with("one stopped"), "{said}");
    assert!(!lives(child), "the child outlived the stop");
    assert_eq!(wharf.run(&["wait", "one"]).code, 137);
}

#[test]
fn groups_labels_and_all_select() {
    let wharf = Wharf::new();
    for (name, group) in [("a", "g"), ("b", "g"), ("c", "h")] {
        wharf.start(name, &["-g", group, "-l", &format!("n={name}")], &["sleep", "1000"]);
    }
    let said = wharf.ok(&["kill", "--group", "g"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(wharf.ok(&["ls", "-q", "--running"]), "c\n");
    wharf.ok(&["stop", "-t", "1", "--label", "n=c"]);
    assert_eq!(wharf.ok(&["ls", "-q", "--running"]), "");
    wharf.ok(&["rm", "--all"]);
    assert_eq!(wharf.ok(&["ls", "-q"]), "");
}

#[test]
fn nothing_named_is_an_error_and_a_part_that_fails_is_told() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sleep", "1000"]);
    for verb in ["stop", "kill", "rm", "restart"] {
        assert_eq!(wharf.run(&[verb]).code, 2, "{verb}");
    }
    assert_eq!(wharf.run(&["rm", "one"]).code, 4);
    assert_eq!(wharf.run(&["stop", "missing"]).code, 3);
    wharf.ok(&["rm", "-f", "one"]);
    assert_eq!(wharf.run(&["show", "one"]).code, 3);
}

#[test]
fn signals_have_names_and_a_restart_is_another_run() {
    let wharf = Wharf::new();
    wharf.start("one", &[], &["sh", "-c", "trap 'echo usr' USR1; echo ready; while :; do sleep 0.05; done"]);
    wharf.until_log("one", "ready");
    wharf.ok(&["signal", "one", "SIGUSR1"]);
    wharf.until_log("one", "usr");
    assert_eq!(wharf.run(&["signal", "one", "NOPE"]).code, 2);
    wharf.ok(&["restart", "-t", "1", "one"]);
    assert_eq!(wharf.json(&["show", "one", "--json"])["run"], 2);
    assert_eq!(wharf.ok(&["rename", "one", "two"]), "two\n");
    assert_eq!(wharf.run(&["show", "one"]).code, 3);
    assert!(crate::support::is_live(&wharf.json(&["show", "two", "--json"])));
}

#[test]
fn a_dry_run_of_gc_says_what_would_go_and_removes_nothing() {
    let wharf = Wharf::new();
    wharf.start("live", &[], &["sleep", "1000"]);
    wharf.start("over", &[], &["true"]);
    wharf.run(&["wait", "over"]);
    let gc = |more: &[&str]| -> Vec<(String, String)> {
        let items = wharf.json(&[&["gc", "--json"], more].concat());
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        items.as_array().unwrap().iter().map(|item| (text(&item["what"]), text(&item["thing"]))).collect()
    };
    assert_eq!(gc(&[]), [], "it is too young to go by itself");
    assert_eq!(gc(&["--older-than", "1h"]), []);
    let dry = gc(&["--dry-run", "--older-than", "0"]);
    assert!(dry.len() == 1 && dry[0].0 == "removed" && dry[0].1.contains("session over"), "{dry:?}");
    wharf.ok(&["show", "over"]);
    assert_eq!(gc(&["--older-than", "0"]), dry);
    assert_eq!(wharf.ok(&["ls", "-q"]), "live\n");
}

#[test]
fn a_dry_run_of_gc_names_the_processes_that_it_would_end() {
    // A container's numbers of processes are not this host's.
    let wharf = Wharf::on_this_host();
    wharf.start("over", &[], &["true"]);
    wharf.run(&["wait", "over"]);
    let ticket = std::fs::read(wharf.state().join("names/over/ticket.json")).unwrap();
    let ticket: serde_json::Value = serde_json::from_slice(&ticket).unwrap();
    let mut stray = std::process::Command::new("sleep");
    let mut stray = stray.arg("60").env("WHARF_TOKEN", ticket["token"].as_str().unwrap()).spawn().unwrap();
    let (pid, gc) = (stray.id() as i32, |more: &[&str]| wharf.json(&[&["gc", "--json"], more].concat()));
    let named = |items: &serde_json::Value| {
        let items = items.as_array().unwrap();
        let one =
            items.iter().find(|item| item["thing"].as_str().unwrap().contains("processes of session over"));
        one.map(|item| item["why"].as_str().unwrap().to_owned())
    };
    // While the session's holder lives, nothing of it would be ended, and that is what is said.
    let named_it = || named(&gc(&["--dry-run"])).is_some_and(|why| why.contains(&pid.to_string()));
    assert!(crate::support::until(named_it), "{}", gc(&["--dry-run"]));
    assert!(crate::support::lives(pid), "a dry run ended it");
    assert!(named(&gc(&[])).is_some());
    stray.wait().unwrap();
    assert_eq!(named(&gc(&["--dry-run"])), None);
}
