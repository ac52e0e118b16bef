//! Tests that hostile process trees end in time, with and without cgroups.

use std::time::Duration;

use crate::support::{Wharf, lives, until};
use crate::tools::{
    Bystander, HOSTILE, MARK, cgroups, children, holder, marked, need_mount_namespaces, show, unshared,
    within,
};

/// Grace and a second, as promised; the rest is what the command itself needs to start on a busy machine.
const STOP_TIMEOUT: Duration = Duration::from_millis(2_100);

fn hostile(wharf: &Wharf, name: &str, mark: &str) {
    wharf.start(name, &["-e", &format!("{MARK}={mark}")], &["perl", "-e", HOSTILE]);
    assert!(until(|| marked(mark).len() >= 10), "the tree has not grown: {:?}", marked(mark));
}

#[test]
fn hostile_trees_end_in_grace_and_a_second() {
    let wharf = Wharf::new();
    let mut bystander = Bystander::new();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    for round in 0..20 {
        let mark = format!("hostile-{}-{round}", std::process::id());
        hostile(&wharf, "one", &mark);
        let session = show(&wharf, "one");
        within(STOP_TIMEOUT, "a stop", || wharf.ok(&["stop", "-t", "1", "one"]));
        assert_eq!(marked(&mark), Vec::<i32>::new(), "round {round} left processes");
        let exit = &show(&wharf, "one")["exit"];
        assert_eq!((&exit["reason"], &exit["survivors"]), (&"stopped".into(), &0.into()), "{exit}");
        assert_eq!(cgroups(&session), Vec::<String>::new());
        wharf.ok(&["rm", "one"]);
        bystander.must_live();
        assert!(crate::support::is_live(&show(&wharf, "neighbour")));
    }
}

/// Where no cgroup can be made the walk is in force, is said to be, and is as thorough.
fn without_cgroups(test: &str, lines: &str) {
    need_mount_namespaces();
    let wharf = Wharf::new();
    let started =
        unshared(&wharf, lines, &["run", "-d", "--name", "neighbour", "--", "sleep", "1000"]).output();
    assert!(started.as_ref().unwrap().status.success(), "{started:?}");
    let mut bystander = Bystander::new();
    for round in 0..5 {
        let mark = format!("{test}-{}-{round}", std::process::id());
        hostile(&wharf, "one", &mark);
        assert_eq!(show(&wharf, "one")["scope"]["kind"], "walk");
        assert!(wharf.ok(&["show", "one"]).contains("walk of descendants"));
        within(STOP_TIMEOUT, "a stop", || wharf.ok(&["stop", "-t", "1", "one"]));
        assert_eq!(marked(&mark), Vec::<i32>::new(), "round {round} left processes");
        wharf.ok(&["rm", "one"]);
        bystander.must_live();
        assert!(crate::support::is_live(&show(&wharf, "neighbour")));
    }
    for (option, value) in [("--memory", "64m"), ("--cpus", "0.5"), ("--pids", "20")] {
        let ran = wharf.run(&["run", "-d", "--name", "limited", option, value, "--", "sleep", "1000"]);
        assert_eq!(ran.code, 6, "{ran:#?}");
        assert!(ran.err.contains("limit") && ran.err.contains("hint: "), "{ran:#?}");
        assert_eq!(wharf.run(&["show", "limited"]).code, 3);
    }
    assert_eq!(std::fs::read_dir(wharf.state().join("sessions")).unwrap().count(), 1);
}

#[test]
fn without_cgroups_hostile_trees_end_too() {
    without_cgroups("masked", "mount -t tmpfs -o ro none /sys/fs/cgroup");
}

#[test]
fn with_read_only_cgroups_hostile_trees_end_too() {
    let lines = "while read -r _ _ _ _ point rest; do case \"$rest\" in *' - cgroup'*) \
                 mount -o remount,bind,ro \"$point\";; esac; done < /proc/self/mountinfo";
    without_cgroups("read-only", lines);
}

#[test]
fn orphaned_zombies_are_reaped() {
    let wharf = Wharf::new();
    let script = r#"
        $| = 1;
        my $parent = fork();
        if (!$parent) {
            for (1..500) { my $pid = fork(); exit 0 if defined $pid && !$pid }
            print "born\n"; sleep 1000;
        }
        print "parent $parent\n"; my $line = <STDIN>; kill 'KILL', $parent; waitpid($parent, 0); print "orphaned\n"; $line = <STDIN>;
    "#;
    wharf.start("one", &["--no-tty"], &["perl", "-e", script]);
    wharf.until_log("one", "born");
    let log = String::from_utf8(wharf.log("one")).unwrap();
    let parent: i32 = log.split("parent ").nth(1).unwrap().split('\n').next().unwrap().parse().unwrap();
    let zombies = || children(parent).iter().filter(|(_, state)| *state == 'Z').count();
    assert!(until(|| zombies() == 500), "{} zombies", zombies());
    let holder = holder(&wharf, "one");
    wharf.ok(&["write", "one", "\n"]);
    wharf.until_log("one", "orphaned");
    // The holder has inherited them all, and keeps none.
    let left = || children(holder).iter().filter(|(_, state)| *state == 'Z').count();
    assert!(until(|| left() == 0), "{} zombies are left", left());
    within(Duration::from_secs(1), "ls", || wharf.ok(&["ls"]));
    wharf.ok(&["write", "one", "\n"]);
    assert_eq!(wharf.run(&["wait", "one"]).code, 0);
    assert!(!lives(parent));
}

#[test]
fn five_hundred_zombies_of_a_command_that_lives_do_not_hinder_its_stop() {
    let wharf = Wharf::new();
    let script = r#"$| = 1; $SIG{TERM} = 'IGNORE'; for (1..500) { exit 0 if !fork() } print "born\n"; sleep 1 while 1;"#;
    wharf.start("one", &[], &["perl", "-e", script]);
    wharf.until_log("one", "born");
    within(Duration::from_millis(1_500), "a stop", || wharf.ok(&["stop", "-t", "0.3", "one"]));
    assert_eq!(show(&wharf, "one")["exit"]["survivors"], 0);
}

#[test]
fn a_grandchild_that_keeps_the_terminal_does_not_hang_the_end() {
    let wharf = Wharf::new();
    let polite = "sh -c 'echo $$ > kept; exec sleep 1000' & until [ -s kept ]; do :; done; echo bye; exit 3";
    let rude = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > kept; while :; do sleep 1; done' & \
                until [ -s kept ]; do :; done; echo bye; exit 3";
    for (n, script) in [polite, rude].into_iter().enumerate() {
        for tty in [true, false] {
            let _ = std::fs::remove_file(wharf.home().join("kept"));
            let name = format!("s{n}-{tty}");
            let options: &[&str] = if tty { &[] } else { &["--no-tty"] };
            wharf.start(&name, options, &["sh", "-c", script]);
            let code = within(Duration::from_secs(3), "the end", || wharf.run(&["wait", &name]).code);
            assert_eq!(code, 3);
            let kept: i32 =
                std::fs::read_to_string(wharf.home().join("kept")).unwrap().trim().parse().unwrap();
            assert!(!lives(kept), "{name} left its grandchild");
            assert!(String::from_utf8(wharf.log(&name)).unwrap().starts_with("bye"));
            // The polite one may have heard of it from its terminal, before anybody had to end it.
            assert!(n == 0 || show(&wharf, &name)["exit"]["leftovers"].as_u64() >= Some(1));
        }
    }
}
