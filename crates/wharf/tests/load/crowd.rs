//! Tests hundreds of sessions that are created, used and removed at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::support::{Wharf, lives, until};
use crate::tools::within;

/// Does something to each of so many names, from so many threads.
fn at_once(wharf: &Wharf, count: usize, threads: usize, each: impl Fn(&Wharf, &str) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let each = &each;
            scope.spawn(move || {
                for n in (thread..count).step_by(threads) {
                    each(wharf, &format!("s{n}"));
                }
            });
        }
    });
}

#[test]
fn a_hundred_at_once_come_and_go() {
    let wharf = Wharf::new();
    // Not even the daemon is there: twenty commands want to start it.
    at_once(&wharf, 100, 20, |wharf, name| wharf.start(name, &[], &["sleep", "1000"]));
    let sessions = wharf.json(&["ls", "--json"]);
    let sessions = sessions.as_array().unwrap();
    let names: BTreeSet<&str> = sessions.iter().map(|session| session["name"].as_str().unwrap()).collect();
    assert_eq!((sessions.len(), names.len()), (100, 100), "{names:?}");
    let pids: BTreeSet<i32> =
        sessions.iter().map(|session| session["pid"].as_i64().unwrap() as i32).collect();
    assert_eq!(pids.len(), 100, "a process is of two sessions");
    for session in sessions {
        assert!(crate::support::is_live(session), "{session}");
        assert!(lives(session["pid"].as_i64().unwrap() as i32));
    }
    // The same name twenty times: one has it.
    let won = std::sync::atomic::AtomicUsize::new(0);
    at_once(&wharf, 20, 20, |wharf, _| {
        let ran = wharf.run(&["run", "-d", "--name", "twin", "--", "sleep", "1000"]);
        assert!([0, 4].contains(&ran.code), "{ran:#?}");
        won.fetch_add(usize::from(ran.code == 0), std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(won.into_inner(), 1, "a name was given twice");
    wharf.ok(&["rm", "-f", "twin"]);

    at_once(&wharf, 100, 20, |wharf, name| drop(wharf.ok(&["rm", "-f", name])));
    assert_eq!(wharf.ok(&["ls", "-q"]), "");
    assert!(pids.iter().all(|pid| !lives(*pid)));
    for place in ["sessions", "names"] {
        assert_eq!(std::fs::read_dir(wharf.state().join(place)).unwrap().count(), 0, "{place}");
    }
}

#[test]
fn creating_and_removing_at_once_loses_no_update() {
    let wharf = Wharf::new();
    at_once(&wharf, 60, 20, |wharf, name| {
        wharf.start(name, &["--no-tty"], &["cat"]);
        match name[1..].parse::<usize>().unwrap() % 3 {
            0 => drop(wharf.ok(&["rm", "-f", name])),
            1 => drop(wharf.ok(&["kill", name])),
            _ => drop(wharf.ok(&["rename", name, &format!("{name}-new")])),
        }
    });
    let sessions = wharf.json(&["ls", "--json"]);
    for n in 0..60 {
        let find =
            |name: &str| sessions.as_array().unwrap().iter().find(|session| session["name"] == name).cloned();
        let (old, new) = (find(&format!("s{n}")), find(&format!("s{n}-new")));
        match n % 3 {
            0 => assert_eq!((old, new), (None, None)),
            1 => assert_eq!((old.unwrap()["state"].as_str(), new), (Some("exited"), None)),
            _ => assert_eq!((old, new.unwrap()["state"].as_str()), (None, Some("running"))),
        }
    }
}

#[test]
fn three_hundred_idle_sessions_hold_nobody_up() {
    const COUNT: usize = 300;
    let wharf = Wharf::new();
    let begun = Instant::now();
    at_once(&wharf, COUNT, 8, |wharf, name| wharf.start(name, &[], &["sleep", "1000"]));
    eprintln!("{COUNT} sessions were started in {:?}", begun.elapsed());
    within(Duration::from_secs(1), "ls", || assert_eq!(wharf.ok(&["ls", "-q"]).lines().count(), COUNT));
    let pids = |wharf: &Wharf| -> BTreeSet<i64> {
        let sessions = wharf.json(&["ls", "--json"]);
        sessions.as_array().unwrap().iter().filter_map(|session| session["pid"].as_i64()).collect()
    };
    let before = pids(&wharf);
    wharf.kill_daemon();
    let begun = Instant::now();
    let listed = within(Duration::from_secs(2), "a new daemon", || wharf.ok(&["ls", "-q"]));
    eprintln!("a daemon with {COUNT} sessions was ready in {:?}", begun.elapsed());
    assert_eq!(listed.lines().count(), COUNT);
    let running = || wharf.ok(&["ls", "-q", "--running"]).lines().count() == COUNT;
    assert!(until(running));
    assert_eq!(pids(&wharf), before, "each has its old process");
    within(Duration::from_secs(1), "one more", || wharf.start("more", &[], &["sleep", "1000"]));
    let begun = Instant::now();
    within(Duration::from_secs(10), "the end of all", || wharf.ok(&["stop", "-t", "5", "--all"]));
    eprintln!("{COUNT} sessions were stopped in {:?}", begun.elapsed());
    assert!(before.iter().all(|pid| !lives(*pid as i32)));
    wharf.ok(&["rm", "--all"]);
    assert_eq!(wharf.ok(&["ls", "-q"]), "");
}
