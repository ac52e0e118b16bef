//! The daemon ended at random moments while commands are under way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use crate::ground::{Ground, Moments, describe, session_of};
use crate::support::{Ran, kill, signal, until};

/// Codes that a command may fail with when the daemon goes away in its middle.
const UNREACHED: [i32; 2] = [7, 124];

#[test]
fn chaos_daemons_killed_while_commands_run() {
    let ground = Ground::new();
    let mut moments = Moments::new();
    let script = "n=0; while [ ! -e stop ]; do n=$((n+1)); echo \"n $n\"; sleep 0.02; done; echo \"last $n\"; \
                  read x; echo \"<$x>\"; exit";
    let agents: Vec<String> = (0..4).map(|i| format!("agent-{i}")).collect();
    for (i, name) in agents.iter().enumerate() {
        ground.start(name, &["--no-tty"], &["sh", "-c", &format!("{script} {}", 40 + i)]);
    }
    let pids: Vec<i32> = agents.iter().map(|name| ground.pid(name)).collect();
    let over = AtomicBool::new(false);
    let ran: BTreeMap<String, Ran> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..2)
            .map(|who| {
                scope.spawn({
                    let (ground, over) = (&ground, &over);
                    move || {
                        let mut ran = BTreeMap::new();
                        for i in 0.. {
                            if over.load(Ordering::Relaxed) {
                                break;
                            }
                            let name = format!("r-{who}-{i}");
                            ran.insert(
                                name.clone(),
                                ground.run(&["run", "-d", "--name", &name, "--", "sh", "-c", "exit 3"]),
                            );
                            let listed = ground.run(&["ls", "--json"]);
                            assert!(listed.code == 0 || UNREACHED.contains(&listed.code), "{listed:#?}");
                        }
                        ran
                    }
                })
            })
            .collect();
        for _ in 0..20 {
            assert!(until(|| ground.locked_by().is_some()), "no daemon came");
            moments.within(Duration::from_millis(120));
            if let Some(pid) = ground.locked_by() {
                kill(pid);
            }
        }
        over.store(true, Ordering::Relaxed);
        starting.into_iter().flat_map(|thread| thread.join().expect("no assertion failed")).collect()
    });

    let states = ground.states();
    assert!(ran.values().any(|ran| ran.code == 0), "nothing could be started: {ran:#?}");
    for (name, ran) in &ran {
        if ran.code == 0 {
            assert!(states.contains_key(name), "{name} was started and is gone");
            assert_eq!(ground.run(&["wait", name]).code, 3, "{name}");
        } else {
            assert!(UNREACHED.contains(&ran.code) && ran.err.contains("hint: "), "{name}: {ran:#?}");
        }
    }
    std::fs::write(ground.home().join("stop"), "").unwrap();
    for (i, name) in agents.iter().enumerate() {
        assert_eq!(ground.pid(name), pids[i], "{name} is another process");
        ground.until_log(name, "last ");
        ground.ok(&["write", name, "bye\n"]);
        assert_eq!(ground.run(&["wait", name]).code, 40 + i as i32);
        let log = String::from_utf8(ground.log(name)).unwrap();
        let count = log.lines().filter(|line| line.starts_with("n ")).count();
        let mut expected: Vec<String> = (1..=count).map(|n| format!("n {n}\n")).collect();
        expected.push(format!("last {count}\n<bye>\n"));
        assert_eq!(log, expected.concat(), "{name}");
    }
}

/// A hundred creates, and the daemon gets a signal in their middle.
fn creates_and(sent: Signal) {
    let ground = Ground::new();
    ground.ok(&["daemon", "start"]);
    let mut moments = Moments::new();
    let daemon = ground.locked_by().expect("it runs");
    let ran: BTreeMap<String, Ran> = std::thread::scope(|scope| {
        let creating: Vec<_> = (0..10)
            .map(|who| {
                let ground = &ground;
                scope.spawn(move || {
                    let names = (0..10).map(|i| format!("c-{who}-{i}"));
                    let create = |name: String| {
                        let ran = ground.run(&["run", "-d", "--name", &name, "--", "sleep", "1000"]);
                        (name, ran)
                    };
                    names.map(create).collect::<Vec<_>>()
                })
            })
            .collect();
        let names = ground.state().join("names");
        let begun = || std::fs::read_dir(&names).map_or(0, Iterator::count);
        assert!(until(|| begun() > 20), "the creates do not begin");
        moments.within(Duration::from_millis(50));
        signal(daemon, sent);
        creating.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(ran.len(), 100);

    let states = ground.states();
    for (name, ran) in &ran {
        match ran.code {
            0 => assert_eq!(
                (&*ran.out, states.get(name).map(String::as_str)),
                (&*format!("{name}\n"), Some("running"))
            ),
            _ => assert!(UNREACHED.contains(&ran.code) && ran.err.contains("wharf: "), "{name}: {ran:#?}"),
        }
    }
    let worked = ran.values().filter(|ran| ran.code == 0).count();
    println!("{worked} of 100 worked, {} are listed", states.len());
    assert!(worked >= 20, "only {worked} worked");

    // One command for each session that runs, one holder, and not one more of either.
    let list = ground.json(&["ls", "--json"]);
    let mut listed: BTreeMap<&str, u32> = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|session| session["state"] == "running")
        .map(|session| (session["id"].as_str().unwrap(), 0))
        .collect();
    for pid in ground.processes() {
        if let Some(id) = session_of(pid) {
            let Some(count) = listed.get_mut(&*id) else { panic!("{} is in no session", describe(pid)) };
            *count += 1;
        }
    }
    assert!(listed.values().all(|count| *count == 1), "{listed:?}");
    let holders: Vec<i32> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|session| ground.holder(session["name"].as_str().unwrap()))
        .collect();
    let is_holder = |pid: &i32| describe(*pid).contains("wharf-holder");
    // The daemon's nursery and its two spares hold nothing.
    let others =
        || ground.processes().into_iter().filter(is_holder).filter(|pid| !holders.contains(pid)).count();
    assert!(until(|| others() <= 3), "{} holders hold nothing", others());
}

#[test]
fn storm_of_creates_and_a_daemon_that_is_asked_to_end() {
    creates_and(Signal::TERM);
}

#[test]
fn storm_of_creates_and_a_daemon_that_is_killed() {
    creates_and(Signal::KILL);
}
