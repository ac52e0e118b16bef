//! Gives a fault test its instance, and fails it where a process is left behind.

use std::fs;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Wharf, kill, lives, signal};

/// How long what was asked to go may take to be gone.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// An instance that faults are done to. Whatever they leave is found, and a test that leaves something fails.
pub(crate) struct Ground {
    wharf: Wharf,
    _left: Left,
}

/// Looks for what is left, after the instance was ended.
struct Left(PathBuf);

impl Ground {
    pub(crate) fn new() -> Self {
        Self::on(Wharf::new())
    }

    /// An instance in a directory of the test's choice.
    pub(crate) fn at(home: &Path) -> Self {
        Self::on(Wharf::at(home))
    }

    fn on(wharf: Wharf) -> Self {
        let left = Left(wharf.home().to_owned());
        Self { wharf, _left: left }
    }

    /// Every process that has to do with this instance and is not this test.
    pub(crate) fn processes(&self) -> Vec<i32> {
        processes(self.wharf.home())
    }

    /// The pid in the daemon's lock, if that process lives. Costs no command.
    pub(crate) fn locked_by(&self) -> Option<i32> {
        let text = fs::read_to_string(self.state().join("daemon.lock")).ok()?;
        text.trim().parse().ok().filter(|pid| lives(*pid))
    }

    /// What `show` says of a session.
    #[track_caller]
    pub(crate) fn show(&self, name: &str) -> Value {
        self.json(&["show", name, "--json"])
    }

    /// The pid of a session's command.
    #[track_caller]
    pub(crate) fn pid(&self, name: &str) -> i32 {
        self.show(name)["pid"].as_i64().expect("a session that runs has a pid") as i32
    }

    /// The ticket of a session, as it is on disk now.
    #[track_caller]
    pub(crate) fn ticket(&self, name: &str) -> Value {
        let path = self.state().join("names").join(name).join("ticket.json");
        serde_json::from_slice(&fs::read(path).expect("a ticket")).expect("JSON")
    }

    /// The pid of a session's holder, as it is on disk now.
    #[track_caller]
    pub(crate) fn holder(&self, name: &str) -> i32 {
        self.ticket(name)["holder"]["pid"].as_i64().expect("a holder") as i32
    }

    /// Whether a session runs, whatever it is doing.
    pub(crate) fn runs(&self, name: &str) -> bool {
        matches!(self.states().get(name).map(String::as_str), Some("running" | "idle" | "working" | "asking"))
    }

    /// The states of all sessions by name. A name that is there twice fails the test.
    #[track_caller]
    pub(crate) fn states(&self) -> std::collections::BTreeMap<String, String> {
        let mut states = std::collections::BTreeMap::new();
        for session in self.json(&["ls", "--json"]).as_array().expect("an array") {
            let text = |field: &str| session[field].as_str().expect("text").to_owned();
            assert_eq!(states.insert(text("name"), text("state")), None, "{session} is there twice");
        }
        states
    }
}

impl Deref for Ground {
    type Target = Wharf;
    fn deref(&self) -> &Wharf {
        &self.wharf
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // A process that is stopped would hold up the end of the instance.
        for pid in self.processes() {
            signal(pid, Signal::CONT);
        }
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        let begun = Instant::now();
        let mut left = processes(&self.0);
        while !left.is_empty() && begun.elapsed() < EXIT_TIMEOUT {
            std::thread::sleep(Duration::from_millis(20));
            left = processes(&self.0);
        }
        let named: Vec<String> = left.iter().map(|pid| describe(*pid)).collect();
        left.into_iter().for_each(kill);
        assert!(named.is_empty() || std::thread::panicking(), "these processes were left: {named:#?}");
    }
}

/// The processes with this path in their environment, or with a file or a directory below it.
pub(crate) fn processes(home: &Path) -> Vec<i32> {
    let home = home.as_os_str().as_bytes();
    let pids = fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
        entry.ok()?.file_name().to_str()?.parse::<i32>().ok().filter(|pid| *pid != std::process::id() as i32)
    });
    pids.filter(|pid| lives(*pid) && belongs(*pid, home)).collect()
}

fn belongs(pid: i32, home: &[u8]) -> bool {
    let below =
        |path: PathBuf| fs::read_link(path).is_ok_and(|at| at.as_os_str().as_bytes().starts_with(home));
    let proc = PathBuf::from(format!("/proc/{pid}"));
    if below(proc.join("cwd")) {
        return true;
    }
    let environ = fs::read(proc.join("environ")).unwrap_or_default();
    if environ.windows(home.len()).any(|window| window == home) {
        return true;
    }
    let fds = fs::read_dir(proc.join("fd")).into_iter().flatten();
    fds.filter_map(Result::ok).any(|fd| below(fd.path()))
}

/// The command line of a process.
pub(crate) fn describe(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// The session that a process was started in, as its environment says.
pub(crate) fn session_of(pid: i32) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut vars = environ.split(|byte| *byte == 0);
    let id = vars.find_map(|var| var.strip_prefix(b"WHARF_SESSION_ID="))?;
    Some(String::from_utf8_lossy(id).into_owned())
}

/// Moments that differ from run to run. The seed is printed, so that a failure can be looked at.
pub(crate) struct Moments(u64);

impl Moments {
    pub(crate) fn new() -> Self {
        let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let seed = seed.as_nanos() as u64 ^ u64::from(std::process::id());
        println!("seed {seed}");
        Self(seed | 1)
    }

    /// Lets a part of a span pass: this is when the fault happens, and not a wait for anything.
    pub(crate) fn within(&mut self, span: Duration) {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        std::thread::sleep(Duration::from_micros(self.0 % (span.as_micros() as u64)));
    }
}
