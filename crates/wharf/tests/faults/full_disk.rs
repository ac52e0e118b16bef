//! A state directory on a disk that is full.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::ground::Ground;
use crate::support::{kill, lives, until};
use crate::tmpfs::{in_a_namespace, mount};

const MIB: usize = 1 << 20;

/// An instance on a disk of its own, and a file that takes all the room there.
pub(crate) struct Disk {
    pub(crate) ground: Ground,
    ballast: PathBuf,
    _root: tempfile::TempDir,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        mount(root.path(), 8 * MIB);
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        Self { ground: Ground::at(&home), ballast: root.path().join("ballast"), _root: root }
    }

    /// Fills the disk to its last byte.
    pub(crate) fn fill(&self) {
        fill(&self.ballast);
    }

    pub(crate) fn free(&self) {
        fs::remove_file(&self.ballast).unwrap();
    }
}

fn fill(ballast: &Path) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(ballast).unwrap();
    for size in [64 << 10, 4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

const SCRIPT: &str = "echo ready; while read x; do echo \"<$x>\"; echo \"$x\" >> /dev/shm/$MARK; \
                      [ \"$x\" = end ] && exit 7; done";

/// A file outside the disk, by which a session shows what it has read.
struct Mark(PathBuf);

impl Mark {
    fn new(what: &str) -> Self {
        Self(PathBuf::from(format!("/dev/shm/wharf-test-{}-{what}", std::process::id())))
    }

    fn name(&self) -> String {
        format!("MARK={}", self.0.file_name().unwrap().to_str().unwrap())
    }

    fn has(&self, text: &str) -> bool {
        fs::read_to_string(&self.0).is_ok_and(|all| all.lines().any(|line| line == text))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_full_disk_refuses_the_new_and_keeps_the_old() {
    in_a_namespace("full_disk::a_full_disk_refuses_the_new_and_keeps_the_old", || {
        let disk = Disk::new();
        let (ground, mark) = (&disk.ground, Mark::new("keeps"));
        for name in ["one", "ends"] {
            ground.start(name, &["-e", &mark.name()], &["sh", "-c", SCRIPT]);
            ground.until_log(name, "ready");
        }
        let (pid, daemon) = (ground.pid("one"), ground.daemon_pid());
        disk.fill();

        for options in [&[][..], &["--no-tty"], &["--name", "named"]] {
            let ran = ground.run(&[&["run", "-d", "--json"], options, &["--", "sleep", "1000"]].concat());
            assert_eq!(ran.code, 8, "{ran:#?}");
            let failure: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
            assert_eq!(failure["code"], "disk_full", "{failure}");
            assert!(failure["hint"].as_str().is_some_and(|hint| hint.contains("disk is full")), "{failure}");
        }
        assert_eq!(ground.states().len(), 2, "something was left of what was refused");

        // Input goes in, and is read.
        for round in 0..20 {
            ground.ok(&["write", "one", &format!("round{round}\r")]);
            assert!(until(|| mark.has(&format!("round{round}"))), "round {round} was not read");
        }
        // One ends meanwhile: its code is known, though there is no room for its record.
        ground.ok(&["write", "ends", "end\r"]);
        assert_eq!(ground.run(&["wait", "ends"]).code, 7);
        assert_eq!((ground.pid("one"), ground.daemon_pid()), (pid, daemon));

        disk.free();
        // What did not fit is gone, and said to be; what comes from now on is kept.
        let kept = |round: &mut u32| {
            *round += 1;
            ground.ok(&["write", "one", &format!("free{round}\r")]);
            String::from_utf8_lossy(&ground.log("one")).contains(&format!("<free{round}>"))
        };
        let mut round = 0;
        assert!(until(|| kept(&mut round)), "nothing is logged again");
        ground.start("new", &[], &["true"]);
        assert_eq!(ground.run(&["wait", "new"]).code, 0);
        ground.ok(&["write", "one", "end\r"]);
        assert_eq!(ground.run(&["wait", "one"]).code, 7);
        assert_eq!(ground.daemon_pid(), daemon, "the daemon was started anew");
    });
}

#[test]
fn output_that_did_not_fit_is_an_explicit_gap() {
    in_a_namespace("full_disk::output_that_did_not_fit_is_an_explicit_gap", || {
        let disk = Disk::new();
        let (ground, mark) = (&disk.ground, Mark::new("gap"));
        // More than the last page of the log can take, so that some of it has no place.
        let script = "echo before; read x; seq 100000; echo done >> /dev/shm/$MARK; while read x; do echo \"after $x\"; done";
        ground.start("one", &["-e", &mark.name()], &["sh", "-c", script]);
        ground.until_log("one", "before");
        disk.fill();
        ground.ok(&["write", "one", "go\r"]);
        assert!(until(|| mark.has("done")), "the command stands still while the disk is full");
        disk.free();
        let mut round = 0;
        let logged = || {
            round += 1;
            ground.ok(&["write", "one", &format!("{round}\r")]);
            String::from_utf8_lossy(&ground.log("one")).contains("after ")
        };
        assert!(until(logged), "nothing is logged again");
        let ran = ground.run(&["logs", "one"]);
        assert_eq!(ran.code, 0);
        assert!(ran.err.contains("bytes are gone here, from "), "{:?}", ran.err);
        assert!(ran.out.starts_with("before"), "{:?}", &ran.out[..ran.out.len().min(100)]);
        // What is shown and what is gone is everything: positions tell how much.
        let number = |word: &str| {
            ran.err.split(word).nth(1).unwrap().split_whitespace().next().unwrap().parse::<usize>().unwrap()
        };
        assert!(number(" to ") > number("from "), "{:?}", ran.err);
    });
}

#[test]
fn a_daemon_starts_on_a_full_disk_and_ends_what_it_finds() {
    in_a_namespace("full_disk::a_daemon_starts_on_a_full_disk_and_ends_what_it_finds", || {
        let disk = Disk::new();
        let ground = &disk.ground;
        for name in ["one", "two"] {
            ground.start(name, &[], &["sleep", "1000"]);
        }
        let pid = ground.pid("one");
        let daemon = ground.daemon_pid().unwrap();
        disk.fill();
        kill(daemon);
        assert!(until(|| !lives(daemon)));
        let states = ground.states();
        assert_eq!((&*states["one"], &*states["two"]), ("running", "running"));
        assert_eq!(ground.pid("one"), pid);
        ground.ok(&["stop", "-t", "1", "one"]);
        assert!(!lives(pid));
        let ran = ground.run(&["run", "-d", "--", "true"]);
        assert_eq!(ran.code, 8, "{ran:#?}");
        disk.free();
        ground.start("three", &[], &["sleep", "1000"]);
        let states = ground.states();
        assert_eq!((&*states["one"], &*states["two"], &*states["three"]), ("exited", "running", "running"));
    });
}

#[test]
fn output_that_did_not_fit_is_a_gap_after_its_holder_was_killed() {
    in_a_namespace("full_disk::output_that_did_not_fit_is_a_gap_after_its_holder_was_killed", || {
        for (name, options) in [("tty", &[][..]), ("pipes", &["--no-tty"])] {
            let disk = Disk::new();
            let (ground, mark) = (&disk.ground, Mark::new(name));
            let script = "echo before; read x; seq 100000; echo done >> /dev/shm/$MARK; while read x; do echo \"after $x\"; done";
            ground.start(name, &[&["-e", &mark.name()], options].concat(), &["sh", "-c", script]);
            ground.until_log(name, "before");
            disk.fill();
            ground.ok(&["write", name, "go\n"]);
            assert!(until(|| mark.has("done")), "the command stands still while the disk is full");
            // What was dropped is known before a word of what follows is in the log.
            let old = ground.holder(name);
            kill(old);
            assert!(until(|| !lives(old)));
            disk.free();
            // Whoever replaced it may not have signed the ticket: there was no room.
            assert!(until(|| ground.run(&["write", name, "now\n"]).code == 0), "it was not replaced");
            ground.until_log(name, "after now");
            let ran = ground.run(&["logs", name]);
            assert!(ran.err.contains("bytes are gone here, from "), "{name}: {:?}", ran.err);
            // What is shown and what is gone is all that was printed.
            let gone: usize = ran
                .err
                .lines()
                .filter_map(|line| {
                    let number =
                        |word: &str| line.split(word).nth(1)?.split_whitespace().next()?.parse().ok();
                    let (from, to): (usize, usize) = (number("from ")?, number(" to ")?);
                    Some(to - from)
                })
                .sum();
            let end = if options.is_empty() { "\r\n" } else { "\n" };
            let typed = if options.is_empty() { "go\r\nnow\r\n" } else { "" };
            let numbers: usize = (1..=100_000).map(|number: u32| number.to_string().len() + end.len()).sum();
            let words = "before".len() + "after now".len() + 2 * end.len() + typed.len();
            assert_eq!(ran.bytes.len() + gone, numbers + words, "{name}: {:?}", ran.err);
        }
    });
}

#[test]
fn an_end_on_a_full_disk_is_known_to_the_next_daemon() {
    in_a_namespace("full_disk::an_end_on_a_full_disk_is_known_to_the_next_daemon", || {
        let disk = Disk::new();
        let (ground, mark) = (&disk.ground, Mark::new("end"));
        for name in ["coded", "stopped"] {
            ground.start(name, &["-e", &mark.name()], &["sh", "-c", SCRIPT]);
            ground.until_log(name, "ready");
        }
        disk.fill();
        ground.ok(&["write", "coded", "end\r"]);
        assert_eq!(ground.run(&["wait", "coded"]).code, 7);
        ground.ok(&["stop", "-t", "5", "stopped"]);
        let daemon = ground.daemon_pid().unwrap();
        kill(daemon);
        assert!(until(|| !lives(daemon)));
        disk.free();
        let states = ground.states();
        assert_eq!((&*states["coded"], &*states["stopped"]), ("exited", "exited"));
        let coded = ground.show("coded");
        assert_eq!(coded["exit"]["code"], 7, "{coded}");
        assert_eq!(coded["exit"]["reason"], "exited", "{coded}");
        let stopped = ground.show("stopped");
        assert_eq!(stopped["exit"]["reason"], "stopped", "{stopped}");
        // They can be started again and removed like any other.
        ground.ok(&["restart", "coded"]);
        ground.until_log("coded", "ready");
        ground.ok(&["rm", "stopped"]);
    });
}

#[test]
fn a_daemon_without_room_for_its_log_serves_on() {
    in_a_namespace("full_disk::a_daemon_without_room_for_its_log_serves_on", || {
        let disk = Disk::new();
        let (ground, mark) = (&disk.ground, Mark::new("log"));
        ground.start("one", &["-e", &mark.name(), "--restart", "always"], &["sh", "-c", SCRIPT]);
        ground.until_log("one", "ready");
        let (daemon, path) = (ground.daemon_pid().unwrap(), ground.state().join("daemon.log"));
        // The last page of the log is full as well.
        let page = 4096;
        let len = fs::metadata(&path).unwrap().len() as usize;
        let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(&vec![b'\n'; len.next_multiple_of(page) - len]).unwrap();
        disk.fill();
        // It ends, and cannot be started again: each attempt is worth a line in the log.
        ground.ok(&["write", "one", "end\r"]);
        let tried =
            || ground.show("one")["detail"].as_str().is_some_and(|detail| detail.contains("restart 3 in"));
        assert!(until(tried), "{}", ground.show("one"));
        assert_eq!(ground.run(&["run", "-d", "--", "true"]).code, 8);
        disk.free();
        assert!(until(|| ground.runs("one")), "{}", ground.show("one"));
        ground.ok(&["write", "one", "heard\r"]);
        assert!(until(|| mark.has("heard")), "the session is deaf");
        assert_eq!(ground.daemon_pid(), Some(daemon));
        // Something to say, with room for it.
        ground.ok(&["daemon", "stop"]);
        assert!(until(|| !lives(daemon)));
        let said = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(said.contains("lines of this log found no room and are gone"), "{said}");
        assert!(!said.contains("panicked") && !said.contains("task failed"), "{said}");
    });
}
