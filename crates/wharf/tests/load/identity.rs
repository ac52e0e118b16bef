//! Tests that a reused pid or a neighbour's cgroup is never signalled.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Wharf, lives, until};
use crate::tools::{Bystander, cgroups, send, show, within};

fn start_time(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

/// Ends a session and its holder behind the daemon's back, and gives the path of its ticket and what it says.
fn bury(wharf: &Wharf, name: &str) -> (std::path::PathBuf, Value) {
    let session = show(wharf, name);
    wharf.kill_daemon();
    for process in [&session["holder"]["pid"], &session["pid"]] {
        let pid = process.as_i64().unwrap() as i32;
        send(pid, Signal::KILL);
        assert!(until(|| !lives(pid)));
    }
    let path = std::path::Path::new(session["path"].as_str().unwrap()).join("ticket.json");
    let ticket = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    (path, ticket)
}

#[test]
fn a_pid_that_is_somebody_elses_by_now_is_never_signalled() {
    for case in ["start", "token", "boot", "holder"] {
        let wharf = Wharf::new();
        wharf.start("one", &[], &["sleep", "1000"]);
        let (path, mut ticket) = bury(&wharf, "one");
        let mut bystander = Bystander::new();
        let (pid, start) = (bystander.pid(), start_time(bystander.pid()));
        // As if the pid had been given away while no daemon ran: another start; the same by chance; another boot.
        let (start, boot) = match case {
            "start" | "holder" => (start - 1, ticket["command"]["boot"].clone()),
            "boot" => (start, "00000000-0000-0000-0000-000000000000".into()),
            _ => (start, ticket["command"]["boot"].clone()),
        };
        ticket["command"] = serde_json::json!({"pid": pid, "start": start, "boot": boot});
        if case == "holder" {
            ticket["holder"] = ticket["command"].clone();
        }
        std::fs::write(&path, serde_json::to_vec(&ticket).unwrap()).unwrap();
        // And a daemon that finds it is not held up by it.
        let session = within(Duration::from_secs(1), "a new daemon", || show(&wharf, "one"));
        assert_eq!(session["state"], "lost", "{case}: {session}");
        assert_eq!(session["detail"], Value::Null);
        for verb in [
            &["signal", "one", "TERM"][..],
            &["stop", "-t", "0.1", "one"],
            &["kill", "one"],
            &["gc"],
            &["rm", "-f", "one"],
        ] {
            wharf.run(verb);
            bystander.must_live();
        }
        wharf.ok(&["kill", "--all"]);
        bystander.must_live();
        // After another boot there is no cgroup of it; this one is of the test's own making.
        for left in cgroups(&session) {
            assert_eq!(case, "boot", "{left} is left");
            std::fs::remove_dir(left).unwrap();
        }
    }
}

#[test]
fn a_ticket_that_names_a_neighbours_cgroup_does_not_end_the_neighbour() {
    let wharf = Wharf::new();
    wharf.start("neighbour", &[], &["sleep", "1000"]);
    wharf.start("one", &[], &["sleep", "1000"]);
    let (neighbour, one) = (show(&wharf, "neighbour"), show(&wharf, "one"));
    let (path, mut ticket) = bury(&wharf, "one");
    ticket["scope"] = neighbour["scope"].clone();
    std::fs::write(&path, serde_json::to_vec(&ticket).unwrap()).unwrap();
    assert_eq!(show(&wharf, "one")["state"], "lost");
    wharf.run(&["kill", "one"]);
    wharf.run(&["rm", "-f", "one"]);
    let after = show(&wharf, "neighbour");
    assert!(crate::support::is_live(&after) && after["pid"] == neighbour["pid"], "{after}");
    assert!(lives(neighbour["pid"].as_i64().unwrap() as i32));
    for left in cgroups(&one) {
        std::fs::remove_dir(left).unwrap();
    }
}
