//! Processes that hide from everything by which a session's are known, and whose holder was killed.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::ground::Ground;
use crate::support::{kill, lives, signal, until};

/// Without variables, terminal, group or parent, and deaf to what can be ignored. It says its pid when it has hidden.
const HIDING: &str = r#"
cat > hide.sh <<'END'
trap '' TERM HUP INT
for procs in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do echo $$ > $procs; done 2>/dev/null
exec </dev/null >/dev/null 2>&1
echo $$ > hidden.new && mv hidden.new hidden
while :; do sleep 0.05; done
END
(env -i PATH="$PATH" setsid sh ./hide.sh &)
echo ready
sleep 1000
"#;

fn hidden(ground: &Ground) -> i32 {
    let read = || fs::read_to_string(ground.home().join("hidden")).ok()?.trim().parse::<i32>().ok();
    assert!(until(|| read().is_some()), "nothing hides");
    let pid = read().unwrap();
    fs::remove_file(ground.home().join("hidden")).unwrap();
    pid
}

fn replace_holder(ground: &Ground, name: &str) {
    let old = ground.holder(name);
    kill(old);
    assert!(until(|| ground.holder(name) != old && lives(ground.holder(name))), "it was not replaced");
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_hidden_orphan_of_a_killed_holder_is_ended_by_a_stop() {
    let ground = Ground::new();
    for verb in [&["stop", "-t", "0.2"][..], &["kill"]] {
        let name = verb[0];
        ground.start(name, &[], &["sh", "-c", HIDING]);
        let hidden = hidden(&ground);
        // Each of them takes over what the one before it had.
        for _ in 0..3 {
            replace_holder(&ground, name);
        }
        assert!(lives(hidden), "a holder's death is none of its session's");
        ground.ok(&[verb, &[name]].concat());
        assert!(!lives(hidden), "it outlived {verb:?}");
        let shown = ground.show(name);
        assert_eq!(
            (&shown["exit"]["survivors"], &shown["exit"]["unsure"]),
            (&0.into(), &().into()),
            "{shown}"
        );
    }
}

#[test]
fn what_is_born_to_a_hidden_orphan_is_ended_too() {
    let ground = Ground::new();
    ground.start("one", &[], &["sh", "-c", HIDING]);
    let first = hidden(&ground);
    replace_holder(&ground, "one");
    // The command is an orphan as well by now, and so is what it starts in the same way.
    ground.ok(&["exec", "one", "--", "true"]);
    ground.start("other", &[], &["sh", "-c", HIDING]);
    let other = hidden(&ground);
    ground.ok(&["stop", "-t", "0.2", "one"]);
    assert!(!lives(first), "it outlived the stop");
    assert!(lives(other), "a stop ended what is another session's");
    ground.ok(&["stop", "-t", "0.2", "other"]);
    assert!(!lives(other));
}

#[test]
fn a_stop_says_that_it_is_unsure_where_nobody_took_the_orphans_in() {
    let ground = Ground::new();
    ground.start("one", &[], &["sh", "-c", HIDING]);
    let hidden = hidden(&ground);
    let nursery = parent(ground.holder("one"));
    kill(nursery);
    assert!(until(|| !lives(nursery)));
    replace_holder(&ground, "one");
    let stopped = ground.run(&["stop", "-t", "0.2", "one"]);
    let (survived, shown) = (lives(hidden), ground.show("one"));
    kill(hidden);
    assert!(survived, "nobody could have known it");
    assert_eq!(shown["exit"]["unsure"], true, "{shown}");
    assert!(stopped.out.contains("may live on"), "{stopped:#?}");
}

#[test]
fn two_holders_killed_at_once_mix_up_no_processes() {
    let ground = Ground::new();
    let mut all = Vec::new();
    for name in ["one", "two"] {
        ground.start(name, &[], &["sh", "-c", HIDING]);
        all.push((name, hidden(&ground), ground.pid(name)));
    }
    let old = ["one", "two"].map(|name| (name, ground.holder(name)));
    for (_, holder) in old {
        kill(holder);
    }
    assert!(until(|| old
        .iter()
        .all(|(name, holder)| { ground.holder(name) != *holder && lives(ground.holder(name)) })));
    ground.ok(&["stop", "-t", "0.2", "one"]);
    assert!(lives(all[1].1) && lives(all[1].2), "a stop ended what may be another session's");
    let one = ground.show("one");
    assert!(one["exit"]["unsure"] == true || !lives(all[0].1), "{one}");
    ground.ok(&["stop", "-t", "0.2", "two"]);
    assert!(all.iter().all(|(_, hidden, command)| !lives(*hidden) && !lives(*command)), "{all:?}");
    assert!(ground.show("two")["exit"]["unsure"].is_null());
}

#[test]
fn a_stop_keeps_its_time_though_nobody_answers_for_the_orphans() {
    let ground = Ground::new();
    ground.start("one", &[], &["sh", "-c", HIDING]);
    let hidden = hidden(&ground);
    let nursery = parent(ground.holder("one"));
    replace_holder(&ground, "one");
    signal(nursery, Signal::STOP);
    let begun = Instant::now();
    ground.ok(&["stop", "-t", "0.2", "one"]);
    let took = begun.elapsed();
    signal(nursery, Signal::CONT);
    assert!(took < Duration::from_secs(8), "it took {took:?}");
    // It was told before, so it is known all the same; that there is no other is not.
    assert!(!lives(hidden), "it outlived the stop");
    assert_eq!(ground.show("one")["exit"]["unsure"], true);
}
