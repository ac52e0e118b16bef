//! Every kind of misbehaviour at once: whoever has nothing to do with it does not notice.

use std::time::{Duration, Instant};

use serde_json::Value;
use wharf_testing::hostile::AT_ONCE;

use crate::place::{COMMAND_TIMEOUT, Kind, Place, at};
use crate::support::until;

/// What a command about somebody else may take meanwhile.
const COMMAND_TIME_LIMIT: Duration = Duration::from_secs(1);
/// What a new daemon may take to come up and answer.
const DAEMON_START_TIMEOUT: Duration = Duration::from_secs(10);
/// What the daemon may use, whatever it is told.
const MAX_MEMORY_BYTES: u64 = 400 << 20;
const MAX_DESCRIPTORS: usize = 2_000;

/// What there is on another host: no file of a session is shared, so whoever is hostile is so by its holder and its terminal.
const REMOTE_ATTACKS: &[(&str, &str)] = &[
    ("full", "listen sock full + place exit.json fifo + place log/*.idx fifo"),
    ("endless", "listen sock endless + place exit.json huge-json"),
    ("hello", "listen sock hello-then-close + tree deep deep"),
    ("long", "listen sock too-long + place exit.json lies"),
    ("liar", "listen sock liar + place exit.json nested-json + place log/*.log noise"),
    ("news", "listen sock news"),
    ("floods", "terminal flood"),
];

at! { everything_at_once_costs_only_the_sessions_that_do_it:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    shared = Place::new(Shared(Docker)),
    far = Place::new(Far(Docker)),
    local = Place::new(Local),
    sandbox = Place::new(Sandbox),
    docker_as_a_user = Place::of_user(Container(Docker)),
    local_as_a_user = Place::of_user(Local),
}

fn everything_at_once_costs_only_the_sessions_that_do_it(place: &Place) {
    place.healthy("victim");
    for number in 0..6 {
        place.healthy(&format!("other-{number}"));
    }
    let attacks = if matches!(place.kind, Kind::Far(_)) { REMOTE_ATTACKS } else { AT_ONCE };
    for (name, words) in attacks {
        place.start(name, &[], &words.split(' ').collect::<Vec<_>>());
    }
    for (name, words) in attacks {
        // What was replaced under a log cannot be read there; on another host there is nothing else.
        if !matches!(place.kind, Kind::Far(_)) {
            place.report(name, words.matches(" + ").count() + 1);
        }
    }
    let mut times = Times::default();
    times.ask(place, 0..3);
    // The next daemon comes up among them, and takes the others in.
    place.wharf.kill_daemon();
    place.within(DAEMON_START_TIMEOUT, &["ls"]);
    place.must_be_well("victim");
    times.ask(place, 3..6);
    // What is asked of a hostile one ends too, and shows nothing that is not its own.
    for (name, _) in attacks {
        for args in
            [&["logs", name, "-n", "3"][..], &["show", name], &["write", name, "x"], &["capture", name]]
        {
            place.within(COMMAND_TIMEOUT, args);
        }
        place.within(COMMAND_TIMEOUT, &["exec", "-T", name, "--", "true"]);
    }
    times.ask(place, 6..6);
    let pid = place.wharf.daemon_pid().expect("the daemon lives");
    let (memory, descriptors) = use_of(pid);
    assert!(memory < MAX_MEMORY_BYTES, "{:?}: the daemon has taken {} MB", place.kind, memory >> 20);
    assert!(descriptors < MAX_DESCRIPTORS, "{:?}: the daemon has {descriptors} descriptors", place.kind);
    // All of them go when somebody says so, whatever answers in the place of their holders, and nothing of the host goes with them.
    let killed = place.within(COMMAND_TIMEOUT * 2, &[&["kill"][..], &names(attacks)].concat());
    if place.kind == Kind::Local {
        // What is not isolated can write its own end, and then runs on under a holder that nobody asks any more.
        place.end_by_force();
    }
    let left = || -> usize {
        place.within(COMMAND_TIMEOUT * 2, &[&["rm"][..], &names(attacks)].concat());
        let ran = place.within(COMMAND_TIMEOUT, &["ls", "--all", "--json"]);
        let all: Vec<Value> = serde_json::from_str(&ran.out).unwrap_or_default();
        all.iter().filter(|one| attacks.iter().any(|(name, _)| one["name"] == *name)).count()
    };
    assert!(until(|| left() == 0), "{:?}: {} are left: {} {}", place.kind, left(), killed.out, killed.err);
    assert_eq!(place.wharf.daemon_pid(), Some(pid), "{:?}: the daemon died of it", place.kind);
    place.must_be_well("victim");
    place.must_be_untouched();
    let (usual, slowest) = times.usual_and_slowest();
    println!(
        "{:?}: nine of ten within {usual:?}, slowest {slowest:?}, memory {} MB, {descriptors} descriptors",
        place.kind,
        memory >> 20
    );
    place.clear();
}

fn names<'a>(attacks: &'a [(&str, &str)]) -> Vec<&'a str> {
    attacks.iter().map(|(name, _)| *name).collect()
}

/// How long commands about others took.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    /// Asks for what users ask for, and ends some sessions.
    #[track_caller]
    fn ask(&mut self, place: &Place, others: std::ops::Range<usize>) {
        for round in 0..5 {
            for args in [&["ls"][..], &["send", "victim", &format!("hello {round}"), "--no-wait"]] {
                self.time(place, args);
            }
        }
        for number in others {
            self.time(place, &["kill", &format!("other-{number}")]);
        }
    }

    #[track_caller]
    fn time(&mut self, place: &Place, args: &[&str]) {
        let began = Instant::now();
        let ran = place.within(COMMAND_TIMEOUT, args);
        assert_eq!(ran.code, 0, "{:?}: wharf {args:?}: {ran:#?}", place.kind);
        let took = began.elapsed();
        assert!(took < COMMAND_TIME_LIMIT, "{:?}: wharf {args:?} took {took:?}", place.kind);
        self.0.push(took);
    }

    /// What nine of ten took at most, and the slowest.
    fn usual_and_slowest(&mut self) -> (Duration, Duration) {
        self.0.sort();
        (self.0[self.0.len() * 9 / 10], *self.0.last().expect("something was asked"))
    }
}

/// The most memory that a process ever had, and how many descriptors it has.
fn use_of(pid: i32) -> (u64, usize) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|text| text.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    (kilobytes.expect("the daemon's memory") << 10, descriptors)
}
