//! Holders that are killed, alone and together with the daemon.

use std::fs;

use crate::ground::{Ground, session_of};
use crate::support::{kill, lives, until};

const SCRIPT: &str = "echo ready; while read x; do echo \"<$x>\"; [ \"$x\" = end ] && exit 7; done";

#[test]
fn a_killed_holder_is_replaced_and_the_session_goes_on() {
    let ground = Ground::new();
    for (name, options) in [("tty", &[][..]), ("pipes", &["--no-tty"])] {
        ground.start(name, options, &["sh", "-c", SCRIPT]);
        ground.until_log(name, "ready");
        let pid = ground.pid(name);
        for round in 0..3 {
            let old = ground.holder(name);
            kill(old);
            assert!(
                until(|| ground.holder(name) != old && lives(ground.holder(name))),
                "it was not replaced"
            );
            let shown = ground.show(name);
            assert!(crate::support::is_live(&shown) && shown["pid"] == pid, "{shown}");
            ground.ok(&["write", name, &format!("round{round}\n")]);
            ground.until_log(name, &format!("<round{round}>"));
        }
        ground.ok(&["write", name, "end\n"]);
        assert_eq!(ground.run(&["wait", name]).code, 7);
        let log = String::from_utf8(ground.log(name)).unwrap();
        let told: Vec<&str> = log.lines().filter(|line| line.starts_with('<') || *line == "ready").collect();
        assert_eq!(told, ["ready", "<round0>", "<round1>", "<round2>", "<end>"], "{log:?}");
    }
}

#[test]
fn a_replaced_holder_can_be_stopped_with_its_whole_tree() {
    let ground = Ground::new();
    let script =
        "setsid sh -c 'trap \"\" TERM HUP; echo $$ > child; while :; do sleep 0.05; done' & sleep 1000";
    ground.start("one", &[], &["sh", "-c", script]);
    let child = || fs::read_to_string(ground.home().join("child")).ok()?.trim().parse::<i32>().ok();
    assert!(until(|| child().is_some()));
    let (child, old) = (child().unwrap(), ground.holder("one"));
    kill(old);
    assert!(until(|| ground.holder("one") != old));
    ground.ok(&["stop", "-t", "0.2", "one"]);
    assert!(!lives(child), "the child outlived the stop");
    assert_eq!(ground.states()["one"], "exited");
}

#[test]
fn holder_and_daemon_killed_is_one_lost_session_and_nothing_else() {
    let ground = Ground::new();
    let script = "echo ready; trap '' HUP; setsid sh -c 'trap \"\" HUP; while :; do sleep 0.05; done' & \
                  while :; do sleep 0.05; done";
    ground.start("lost", &[], &["sh", "-c", script]);
    for name in ["other", "another"] {
        ground.start(name, &[], &["sh", "-c", SCRIPT]);
    }
    ground.until_log("lost", "ready");
    let id = ground.show("lost")["id"].as_str().unwrap().to_owned();
    let others = [ground.pid("other"), ground.pid("another")];
    let holder = ground.holder("lost");
    ground.kill_daemon();
    kill(holder);
    assert!(until(|| !lives(holder)));

    let states = ground.states();
    assert_eq!((&*states["lost"], &*states["other"], &*states["another"]), ("lost", "running", "running"));
    assert_eq!([ground.pid("other"), ground.pid("another")], others);
    ground.until_log("lost", "ready");
    for name in ["other", "another"] {
        ground.ok(&["write", name, "end\r"]);
        assert_eq!(ground.run(&["wait", name]).code, 7);
    }
    let waited = ground.run(&["wait", "lost"]);
    assert_ne!(waited.code, 0, "{waited:#?}");
    let refused = ground.run(&["write", "lost", "x"]);
    assert!(refused.code != 0 && refused.err.contains("wharf: "), "{refused:#?}");

    let strays =
        || ground.processes().into_iter().filter(|pid| session_of(*pid).as_ref() == Some(&id)).count();
    if strays() > 0 {
        let swept = ground.ok(&["gc"]);
        assert!(swept.contains("processes of session lost"), "{swept}");
    }
    assert!(until(|| strays() == 0), "{:?}", ground.processes());
    assert_eq!(ground.states()["lost"], "lost");
    ground.ok(&["rm", "lost"]);
    assert_eq!(ground.run(&["show", "lost"]).code, 3);
}

#[test]
fn what_outlives_daemon_and_holder_is_ended_and_told() {
    let ground = Ground::new();
    let script = "echo ready; trap '' HUP; setsid sh -c 'trap \"\" HUP; while :; do sleep 0.05; done' & \
                  while :; do sleep 0.05; done";
    ground.start("lost", &[], &["sh", "-c", script]);
    ground.until_log("lost", "ready");
    let id = ground.show("lost")["id"].as_str().unwrap().to_owned();
    let strays =
        || ground.processes().into_iter().filter(|pid| session_of(*pid).as_ref() == Some(&id)).count();
    let (holder, pid) = (ground.holder("lost"), ground.pid("lost"));
    ground.kill_daemon();
    kill(holder);
    assert!(until(|| !lives(holder)) && lives(pid), "the command is to outlive its holder");

    assert_eq!(ground.states()["lost"], "lost");
    assert!(until(|| strays() == 0), "{:?}", ground.processes());
    let shown = ground.show("lost");
    assert!(shown["exit"]["leftovers"].as_u64().is_some_and(|count| count >= 2), "{shown}");
    assert_eq!(shown["exit"]["survivors"], 0, "{shown}");
}
