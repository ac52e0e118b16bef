//! A state directory on a disk that is full.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::ground::Ground;
use crate::support::{kill, lives, until};
use crate::tmpfs::{in_a_namespace, mount};

const MIB: usize = 1 << 20;

/// An instance on a disk of its own, and a file that takes all the room there.
struct Disk {
    ground: Ground,
    ballast: PathBuf,
    _root: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        mount(root.path(), 8 * MIB);
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        Self { ground: Ground::at(&home), ballast: root.path().join("ballast"), _root: root }
    }

    /// Fills the disk to its last byte.
    fn fill(&self) {
        fill(&self.ballast);
    }

    fn free(&self) {
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
            assert_eq!(failure["code"], "exhausted", "{failure}");
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
