//! An instance of Wharf of its own: its home, its daemon, its sessions, and their end.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

mod ground;
mod pty;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wharf_backend::conformance::left_out;

use ground::Ground;
pub(crate) use ground::engine;
pub(crate) use pty::Pty;

/// How long a test waits for anything at all.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// One instance in a temporary directory. Nothing of it is left when it is dropped.
pub(crate) struct Wharf {
    /// The backend that the tests were told to run on; none where they are on this host by themselves.
    ground: Option<&'static Ground>,
    home: PathBuf,
    /// Who runs its commands, where it is not the test's own user.
    user: Option<u32>,
    /// The programs, where that one can reach them.
    programs: Option<tempfile::TempDir>,
    /// Removed with the instance, where it was made for it.
    _made: Option<tempfile::TempDir>,
}

/// What a command gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) bytes: Vec<u8>,
}

impl Wharf {
    pub(crate) fn new() -> Self {
        let made = tempfile::tempdir().expect("a temporary directory");
        let home = made.path().to_owned();
        Self { ground: Ground::get(), home, user: None, programs: None, _made: Some(made) }
    }

    /// An instance for what only this host has, or what the test itself chooses a backend for: `WHARF_TEST_BACKEND` changes
    /// nothing here.
    pub(crate) fn on_this_host() -> Self {
        let mut wharf = Self::new();
        wharf.ground = None;
        wharf
    }

    /// An instance of another user, whose home it is. Only root can have one.
    pub(crate) fn of_user(user: u32) -> Self {
        if !rustix::process::geteuid().is_root() {
            left_out("only root can become another user");
        }
        let mut wharf = Self::on_this_host();
        wharf.user = Some(user);
        wharf.programs = Some(programs_for_others());
        std::os::unix::fs::chown(&wharf.home, Some(user), Some(user)).expect("the tests run as root");
        wharf
    }

    /// An instance in a directory that the test has chosen.
    pub(crate) fn at(home: &Path) -> Self {
        Self { ground: Ground::get(), home: home.to_owned(), user: None, programs: None, _made: None }
    }

    /// Whether the terminals of sessions answer applications themselves, and the engine does not.
    pub(crate) fn answers_itself(&self) -> bool {
        self.ground.is_some_and(Ground::is_tmux)
    }

    /// The user's home.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Where the instance keeps its state.
    pub(crate) fn state(&self) -> PathBuf {
        self.home.join(".local/state/wharf")
    }

    /// A program where the instance's user can reach it: a clone may be below a home that is its owner's alone.
    pub(crate) fn reachable(&self, built: &Path) -> PathBuf {
        let Some(dir) = &self.programs else { return built.to_owned() };
        let place = dir.path().join(built.file_name().expect("a program has a name"));
        if !place.exists() {
            std::fs::copy(built, &place).expect("a copy of the program");
        }
        place
    }

    /// A command of the program with an environment that has nothing of this machine but the path.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.reachable(Path::new(env!("CARGO_BIN_EXE_wharf"))));
        command
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("WHARF_HOLDER", self.reachable(Path::new(env!("CARGO_BIN_EXE_wharf-holder"))))
            .current_dir(&self.home)
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        match self.ground {
            Some(ground) => ground.shape(&mut command, args, &self.home),
            None => {
                command.args(args);
            }
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("wharf runs").into()
    }

    /// Runs a command to its end with this standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("wharf runs");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("wharf ends");
        // A command that ended before it read everything has closed the pipe.
        let _ = writer.join().expect("the writer does not panic");
        output.into()
    }

    /// Runs a command that must work, and gives its standard output.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "wharf {args:?} failed: {ran:#?}");
        ran.out
    }

    /// Runs a command that must work, and reads its JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).expect("JSON")
    }

    /// Starts a session that is detached.
    #[track_caller]
    pub(crate) fn start(&self, name: &str, options: &[&str], argv: &[&str]) {
        let args = [&["run", "-d", "--name", name], options, &["--"], argv].concat();
        assert_eq!(self.ok(&args), format!("{name}\n"));
    }

    /// The raw log of a session.
    pub(crate) fn log(&self, name: &str) -> Vec<u8> {
        self.run(&["logs", name]).bytes
    }

    /// Waits until a session's log has this text.
    #[track_caller]
    pub(crate) fn until_log(&self, name: &str, text: &str) {
        let shows = || String::from_utf8_lossy(&self.log(name)).contains(text);
        if !until(shows) {
            let log = self.log(name);
            panic!("{name} never printed {text:?}; its log is {:?}", String::from_utf8_lossy(&log));
        }
    }

    /// The daemon's pid, if one runs.
    pub(crate) fn daemon_pid(&self) -> Option<i32> {
        let ran = self.run(&["daemon", "status", "--json"]);
        let status: Value = serde_json::from_str(&ran.out).ok()?;
        status["pid"].as_i64().map(|pid| pid as i32)
    }

    /// Ends the daemon as a crash would.
    #[track_caller]
    pub(crate) fn kill_daemon(&self) -> i32 {
        let pid = self.daemon_pid().expect("a daemon runs");
        kill(pid);
        assert!(until(|| self.daemon_pid().is_none()), "the daemon outlived KILL");
        pid
    }
}

impl Drop for Wharf {
    fn drop(&mut self) {
        if self.state().join("sessions").exists() {
            self.run(&["kill", "--all"]);
        }
        if let Some(pid) = self.daemon_pid() {
            self.run(&["daemon", "stop"]);
            if self.daemon_pid() == Some(pid) {
                kill(pid);
            }
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let code = output.status.code().or_else(|| output.status.signal().map(|signal| 128 + signal));
        Self {
            code: code.unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
        }
    }
}

/// A directory that everybody can reach, for programs.
fn programs_for_others() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    dir
}

/// Waits for a condition; whether it came true.
pub(crate) fn until(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < TEST_TIMEOUT {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Whether a session runs, whatever it is doing.
pub(crate) fn is_live(session: &Value) -> bool {
    matches!(session["state"].as_str(), Some("running" | "idle" | "working" | "asking"))
}

/// Whether a process lives: a zombie does not.
pub(crate) fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// Ends a process that the test knows to be its own.
pub(crate) fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// Leaves the test out where a program is not here.
pub(crate) fn needs(program: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|dir| dir.join(program).exists()) {
        left_out(&format!("{program} is not here"));
    }
}

/// Sends a signal to a process that the test knows to be its own.
pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
