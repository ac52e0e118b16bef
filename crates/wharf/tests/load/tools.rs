//! What several of these tests need: marked processes, a holder's memory, a private view of the system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use wharf_backend::conformance::left_out;
use wharf_holder::wire::PendingInput;
use wharf_holder_client::client::{Client, Event};

use crate::support::{Wharf, lives};

/// The variable by which a test finds every process of its session, whatever they did to hide.
pub(crate) const MARK: &str = "WHARF_TEST_MARK";

/// TERM, HUP and INT ignored; sessions of their own; double forks; an emptied environment is not needed to hide from a
/// walk, a moving pid is: each mover forks and dies, again and again. Should all else fail, it ends by itself in a minute.
pub(crate) const HOSTILE: &str = r#"
use POSIX;
$SIG{TERM} = $SIG{HUP} = $SIG{INT} = 'IGNORE';
my $end = time + 60;
sub nap { POSIX::_exit(0) if time > $end; select(undef, undef, undef, $_[0]) }
sub mover { while (1) { if (fork()) { POSIX::_exit(0) } POSIX::setsid(); nap(0.002) } }
sub breeder { while (1) { if (!fork()) { POSIX::setsid(); if (fork()) { POSIX::_exit(0) } nap(0.2); POSIX::_exit(0) } nap(0.02); 1 while waitpid(-1, WNOHANG) > 0 } }
sub sitter { POSIX::setsid(); while (1) { nap(1) } }
for my $kind (\&mover, \&mover, \&mover, \&breeder, \&breeder, \&sitter, \&sitter, \&sitter) {
    my $pid = fork();
    if (!$pid) { POSIX::setsid(); if (fork()) { POSIX::_exit(0) } $kind->(); }
}
$| = 1; print "up\n";
breeder();
"#;

/// A process of the test that no session may touch.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("1000").stdin(Stdio::null()).spawn().expect("sleep runs"))
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    #[track_caller]
    pub(crate) fn must_live(&mut self) {
        assert_eq!(self.0.try_wait().expect("it is ours"), None, "a bystander was ended");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every living process that carries this mark in its environment.
pub(crate) fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let carries = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|b| *b == 0).any(|var| var == wanted.as_bytes()))
    };
    pids().into_iter().filter(carries).filter(|pid| lives(*pid)).collect()
}

pub(crate) fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The children of a process, with the letters of their states.
pub(crate) fn children(parent: i32) -> Vec<(i32, char)> {
    let child = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        (fields.next()?.parse() == Ok(parent)).then_some((pid, state))
    };
    pids().into_iter().filter_map(child).collect()
}

/// What a session is, as `show` has it.
#[track_caller]
pub(crate) fn show(wharf: &Wharf, name: &str) -> Value {
    wharf.json(&["show", name, "--json"])
}

#[track_caller]
pub(crate) fn pid(wharf: &Wharf, name: &str) -> i32 {
    show(wharf, name)["pid"].as_i64().expect("it runs") as i32
}

#[track_caller]
pub(crate) fn holder(wharf: &Wharf, name: &str) -> i32 {
    show(wharf, name)["holder"]["pid"].as_i64().expect("it has a holder") as i32
}

/// What the holder of a session says of its input.
pub(crate) fn pending(wharf: &Wharf, name: &str) -> PendingInput {
    let path = show(wharf, name)["path"].as_str().expect("a path").to_owned();
    let mut client = Client::connect(Path::new(&path), "program").expect("it has a holder");
    client.set_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    let asked = client.pending().expect("the holder lives");
    loop {
        if let Event::Done { seq, answer } =
            client.next_event().expect("an answer").expect("the holder lives")
            && seq == asked
        {
            return serde_json::from_slice(&answer).expect("JSON");
        }
    }
}

/// A number of `/proc/PID/status`, in kilobytes.
#[track_caller]
pub(crate) fn memory(pid: i32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the kernel says it");
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number")
}

/// What each descriptor of a process is.
#[track_caller]
pub(crate) fn descriptors(pid: i32) -> BTreeMap<u32, String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
    let one = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, target.to_string_lossy().into_owned()))
    };
    entries.filter_map(one).collect()
}

/// How often a byte is there.
pub(crate) fn count(bytes: &[u8], wanted: u8) -> usize {
    bytes.split(|byte| *byte == wanted).count() - 1
}

/// Writes an executable file into the instance's home, and gives its path.
pub(crate) fn program(wharf: &Wharf, name: &str, text: &str) -> String {
    let path = wharf.home().join(name);
    fs::write(&path, text).expect("a file can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    path.to_str().expect("a plain path").to_owned()
}

/// Runs something that must be done in time.
#[track_caller]
pub(crate) fn within<T>(limit: Duration, what: &str, run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let value = run();
    let took = begun.elapsed();
    assert!(took <= limit, "{what} took {took:?}, which is more than {limit:?}");
    value
}

pub(crate) fn send(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).expect("a pid"), signal);
}

/// The cgroup directories of a session that are there now.
pub(crate) fn cgroups(session: &Value) -> Vec<String> {
    let dirs = session["scope"]["dirs"].as_array().cloned().unwrap_or_default();
    let dirs = dirs.iter().filter_map(|dir| dir.as_str().map(str::to_owned));
    dirs.filter(|dir| fs::exists(dir).unwrap_or(false)).collect()
}

/// Leaves a test out where this process may not make mount namespaces.
pub(crate) fn need_mount_namespaces() {
    if !Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|ran| ran.status.success()) {
        left_out("no mount namespace can be had");
    }
}

/// A command of the program in a mount namespace of its own, after these lines of shell.
pub(crate) fn unshared(wharf: &Wharf, lines: &str, args: &[&str]) -> Command {
    let plain = wharf.command(args);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", &format!("{lines}\nexec \"$0\" \"$@\"")]);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.current_dir(wharf.home()).stdin(Stdio::null());
    command
}
