//! A holder that is stopped or hangs, and says nothing: what is asked of it is answered in time, and its silence is told.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal};
use wharf_backend::conformance::left_out;

use crate::ground::Ground;
use crate::support::{is_live, kill, lives, signal, until};

/// What anything may take beyond the time that it was given, with room for a loaded machine.
const MARGIN: Duration = Duration::from_secs(6);

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed())
}

#[test]
fn input_for_a_stopped_holder_keeps_its_time_and_the_silence_is_told() {
    let ground = Ground::new();
    ground.start("one", &[], &["cat"]);
    let holder = ground.holder("one");
    signal(holder, Signal::STOP);
    let (ran, took) = timed(|| ground.run(&["write", "--timeout", "2", "one", "late\r"]));
    assert_eq!(ran.code, 124, "{ran:#?}");
    assert!(took < Duration::from_secs(2) + MARGIN, "it took {took:?}");
    assert!(ran.err.contains("holder") && ran.err.contains("does not answer"), "{ran:#?}");
    let silent = || ground.show("one")["state"] == "unknown";
    assert!(until(silent), "{}", ground.show("one"));
    let detail = ground.show("one")["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains(&format!("process {holder}")) && detail.contains("answer"), "{detail}");
    // When it answers again, so does the session.
    signal(holder, Signal::CONT);
    assert!(until(|| is_live(&ground.show("one"))), "{}", ground.show("one"));
    ground.ok(&["write", "one", "now\r"]);
    ground.until_log("one", "now\r\nnow");
}

#[test]
fn a_stop_or_kill_of_a_session_with_a_stopped_holder_is_done_in_time() {
    let ground = Ground::new();
    for (name, verb) in [("stopped", &["stop", "-t", "2"][..]), ("killed", &["kill"])] {
        ground.start(name, &[], &["sh", "-c", "sleep 1000 & setsid sleep 1000 & wait"]);
        let (holder, pid) = (ground.holder(name), ground.pid(name));
        signal(holder, Signal::STOP);
        let (ran, took) = timed(|| ground.run(&[verb, &[name]].concat()));
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(took < Duration::from_secs(2) + MARGIN, "{verb:?} took {took:?}");
        assert!(!lives(pid), "{verb:?} left the command");
        assert_eq!(ground.show(name)["state"], "exited");
        assert_eq!(ground.show(name)["exit"]["reason"], name);
    }
}

/// What traces a process; it goes with the test.
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Traces a process, as a debugger does: it stands still, and nobody else can let it go on. None where that is forbidden.
fn trace(pid: i32) -> Option<Tracer> {
    let call = if cfg!(target_arch = "aarch64") { 117 } else { 101 };
    let script = format!("syscall({call}, 16, {pid}, 0, 0) == 0 or exit 1; $| = 1; print '.'; sleep 600");
    let mut tracer = Command::new("perl").args(["-e", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let told = tracer.stdout.as_mut().unwrap().read(&mut [0]).unwrap();
    if told == 0 {
        tracer.wait().unwrap();
        return None;
    }
    Some(Tracer(tracer))
}

#[test]
fn a_holder_that_hangs_and_cannot_be_woken_holds_nobody_up() {
    let ground = Ground::new();
    ground.start("one", &[], &["sh", "-c", "sleep 1000 & setsid sleep 1000 & wait"]);
    let (holder, pid) = (ground.holder("one"), ground.pid("one"));
    let Some(_tracer) = trace(holder) else {
        drop(ground);
        left_out("a process cannot be traced here");
    };
    let halted =
        || std::fs::read_to_string(format!("/proc/{holder}/status")).unwrap().contains("tracing stop");
    assert!(until(halted));
    let bound = Duration::from_secs(2) + MARGIN;
    for verb in [&["write", "--timeout", "2", "one", "late\r"][..], &["stop", "-t", "2", "one"]] {
        let (ran, took) = timed(|| ground.run(verb));
        assert!(ran.code == 124 && ran.err.contains("does not answer"), "{ran:#?}");
        assert!(took < bound, "{verb:?} took {took:?}");
    }
    // Those who ask for what needs no holder have it, and are told.
    let shown = ground.show("one");
    assert!(shown["state"] == "unknown" && lives(pid), "{shown}");
    assert!(shown["detail"].as_str().unwrap().contains(&format!("process {holder}")), "{shown}");
    let (_, took) = timed(|| ground.run(&["exec", "-T", "one", "--", "true"]));
    assert!(took < Duration::from_secs(5) + MARGIN, "exec took {took:?}");
    let (ran, took) = timed(|| ground.run(&["kill", "one"]));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(took < bound, "kill took {took:?}");
    assert!(until(|| !lives(pid) && !lives(holder)), "something was left");
    assert_eq!(ground.show("one")["exit"]["reason"], "killed");
}

/// Hangs up on all connections of a process, as if it had been killed and were not gone yet. False where that is forbidden.
fn hang_up(pid: i32) -> bool {
    let process = Pid::from_raw(pid).unwrap();
    let process = rustix::process::pidfd_open(process, PidfdFlags::empty()).unwrap();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let number = entry.file_name().to_str().unwrap().parse().unwrap();
        let Ok(link) = std::fs::read_link(entry.path()) else { continue };
        if link.to_string_lossy().starts_with("socket:") {
            match rustix::process::pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
                Ok(socket) => drop(UnixStream::from(socket).shutdown(Shutdown::Both)),
                Err(_) => return false,
            }
        }
    }
    true
}

#[test]
fn a_holder_that_is_killed_and_takes_its_time_to_go_is_replaced() {
    let ground = Ground::new();
    ground.start("one", &[], &["sh", "-c", "echo ready; while read x; do echo \"<$x>\"; done"]);
    ground.until_log("one", "ready");
    let (holder, pid) = (ground.holder("one"), ground.pid("one"));
    signal(holder, Signal::STOP);
    if !hang_up(holder) {
        kill(holder);
        drop(ground);
        left_out("descriptors of another process cannot be taken here");
    }
    // The time that it takes is the fault.
    std::thread::sleep(Duration::from_secs(2));
    kill(holder);
    assert!(
        until(|| ground.holder("one") != holder && lives(ground.holder("one"))),
        "{}",
        ground.show("one")
    );
    let shown = ground.show("one");
    assert!(is_live(&shown) && shown["pid"] == pid, "{shown}");
    ground.ok(&["write", "one", "on\r"]);
    ground.until_log("one", "<on>");
}
