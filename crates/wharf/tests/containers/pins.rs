//! What a container was given stays what it was, whoever starts it again.

use std::fs;
use std::os::unix::fs::symlink;

use crate::dock::{Dock, on_both};
use crate::support::until;

on_both! {
    a_swapped_mount_stops_the_policy_and_is_accepted_by_hand
    nobody_inside_accepts_a_change
    a_restart_that_would_be_refused_stops_nothing
    a_work_tree_that_is_not_believed_is_told_at_once
}

fn a_swapped_mount_stops_the_policy_and_is_accepted_by_hand(dock: &Dock) {
    let (project, precious) = (dock.wharf.home().join("project"), dock.wharf.home().join("precious"));
    fs::create_dir_all(project.join("cache")).expect("the home is ours");
    fs::create_dir(&precious).expect("the home is ours");
    fs::write(precious.join("key"), "secret").expect("the home is ours");
    let (outer, inner) = (project.to_str().expect("UTF-8"), project.join("cache"));
    let inner = inner.to_str().expect("UTF-8");
    let script = format!("echo run; cat {inner}/key; until [ -e {outer}/go ]; do sleep 0.05; done; exit 3");
    let options = ["-v", outer, "-v", inner, "--restart", "on-failure"];
    dock.start("swap", &options, &["sh", "-c", &script]);
    dock.wharf.until_log("swap", "run");
    let shown = || dock.wharf.json(&["show", "swap", "--json"]);
    let by = |who: &str| {
        let mounts = shown()["mounts"].as_array().cloned().unwrap_or_default();
        mounts.iter().filter(|mount| mount["by"] == who).count()
    };
    assert_eq!((by("user"), by("wharf") >= 3), (2, true), "{}", shown());
    let page = dock.ok(&["show", "swap"]);
    assert!(page.contains("as you asked") && page.contains("pinned"), "{page}");
    // As another session does that has the project too.
    fs::remove_dir(project.join("cache")).expect("it is empty");
    symlink(&precious, project.join("cache")).expect("a link");
    fs::write(project.join("go"), "").expect("a file");
    assert!(until(|| shown()["state"] == "exited"), "{}", shown());
    assert!(shown()["detail"].as_str().is_some_and(|text| text.contains("is now a link to")), "{}", shown());
    let refused = dock.run(&["restart", "swap"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    assert!(refused.err.contains("restart swap --repin"), "{refused:#?}");
    assert!(!String::from_utf8_lossy(&dock.wharf.log("swap")).contains("secret"));
    dock.ok(&["restart", "swap", "--repin"]);
    dock.wharf.until_log("swap", "secret");
}

fn a_restart_that_would_be_refused_stops_nothing(dock: &Dock) {
    let (given, other) = (dock.wharf.home().join("given"), dock.wharf.home().join("other"));
    fs::create_dir_all(&given).expect("the home is ours");
    fs::create_dir(&other).expect("the home is ours");
    let place = given.to_str().expect("UTF-8");
    dock.start("live", &["-v", place], &["sleep", "600"]);
    let shown = || dock.wharf.json(&["show", "live", "--json"]);
    let before = shown();
    fs::remove_dir(&given).expect("it is empty");
    symlink(&other, &given).expect("a link");
    let refused = dock.run(&["restart", "live"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    assert!(refused.err.contains("restart live --repin"), "{refused:#?}");
    let after = shown();
    assert_eq!((&after["state"], &after["run"]), (&before["state"], &before["run"]), "{after}");
    assert_eq!(after["pid"], before["pid"], "it was stopped for a start that cannot be");
    dock.ok(&["restart", "live", "--repin"]);
    assert_eq!(shown()["run"], 2);
}

fn a_work_tree_that_is_not_believed_is_told_at_once(dock: &Dock) {
    let tree = dock.wharf.home().join("tree");
    fs::create_dir_all(&tree).expect("the home is ours");
    fs::write(tree.join(".git"), "gitdir: /nowhere/worktrees/tree\n").expect("the home is ours");
    let place = tree.to_str().expect("UTF-8");
    let engine = ["-b", dock.engine_name(), "--image", crate::engine::IMAGE, "--network", "none"];
    for how in [
        &["run", "-d", "--name", "one"][..],
        &["run", "--name", "two", "-d", "--json"],
        &["ensure", "--name", "three"],
    ] {
        let ran = dock.run(&[how, &engine, &["-v", place, "--", "sleep", "600"]].concat());
        assert_eq!(ran.code, 0, "{ran:#?}");
        let told = format!("warning: {place} is not used as a work tree: ");
        assert!(ran.err.contains(&told), "{ran:#?}");
    }
}

fn nobody_inside_accepts_a_change(dock: &Dock) {
    dock.start("other", &[], &["sleep", "600"]);
    // A session of this host with every right that a session can have.
    let wharf = dock.wharf.command(&["version"]).get_program().to_string_lossy().into_owned();
    let script = format!("{wharf} restart other --repin; echo code $?");
    let ran = dock.run(&[
        "run",
        "-d",
        "--name",
        "inside",
        "-b",
        "local",
        "--allow-control",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    dock.wharf.until_log("inside", "code 5");
}
