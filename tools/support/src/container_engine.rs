//! Starts a Docker or Podman of a run's own, as the tests have theirs: its own directory, processes and network, and gone with it.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::process;
use crate::step::has;

/// What keeps an engine, and ends it with all that it made.
const KEEPER: &str = include_str!("../../../crates/backends/container/tests/support/engine.sh");
/// One static program by the names that the tasks use.
const IMAGE_ROOT: &str = r#"
    mkdir -p "$1/bin" "$1/tmp" && cp "$(command -v busybox)" "$1/bin/busybox"
    for name in sh sleep cat echo; do ln -s busybox "$1/bin/$name"; done
    tar -C "$1" -c ."#;
/// How long an engine may take to come up, and to go.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(90);

/// The engine.
pub struct ContainerEngine {
    kind: Kind,
    /// Held for as long as the engine is wanted.
    users: Option<File>,
    keeper: Child,
    dir: TempDir,
}

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `dockerd`.
    Docker,
    /// `podman system service`.
    Podman,
}

impl Kind {
    /// The engine of a backend, if it has one.
    pub fn of(backend: &str) -> Option<Self> {
        match backend {
            "docker" => Some(Self::Docker),
            "podman" => Some(Self::Podman),
            _ => None,
        }
    }

    /// The name of the backend, and of the engine's own command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

impl ContainerEngine {
    /// The image that it has: a shell, `sleep`, `cat`.
    pub const IMAGE: &str = "localhost/wharf-xtask:latest";

    /// Starts one, and gives it its image.
    pub fn start(kind: Kind) -> Result<Self> {
        for program in [kind.name(), "busybox", "unshare", "flock"] {
            if !has(program) {
                bail!("{program} is not here: `cargo xtask setup` names the packages");
            }
        }
        // Short, because sockets live in it.
        let dir = tempfile::Builder::new().prefix("we").tempdir().context("a temporary directory")?;
        let users = File::create(dir.path().join("users"))?;
        users.lock_shared()?;
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "wharf-engine", kind.name()]).arg(dir.path());
        let keeper = keeper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let engine = Self { kind, users: Some(users), keeper, dir };
        let deadline = Instant::now() + ENGINE_TIMEOUT;
        while !engine.command(&["version"]).output()?.status.success() {
            if Instant::now() > deadline {
                let log = std::fs::read_to_string(engine.dir.path().join("log")).unwrap_or_default();
                bail!("{} did not come up: {}", kind.name(), log.lines().last().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        engine.import()?;
        Ok(engine)
    }

    /// Which one it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it listens, as its own command line and ours find it.
    pub fn variable(&self) -> (&'static str, String) {
        let name = match self.kind {
            Kind::Docker => "DOCKER_HOST",
            Kind::Podman => "CONTAINER_HOST",
        };
        (name, format!("unix://{}", self.socket().display()))
    }

    /// A command of its own command line.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.kind.name());
        if self.kind == Kind::Podman {
            command.arg("--remote");
        }
        let (name, value) = self.variable();
        command.args(args).env(name, value).env_remove("DOCKER_CONTEXT").stdin(Stdio::null());
        command
    }

    /// Every process of it and of its containers.
    pub fn processes(&self) -> Vec<i32> {
        process::descendants(self.keeper.id() as i32)
    }

    /// The words that it prints, each of them something that it has.
    pub fn list(&self, args: &[&str]) -> Result<Vec<String>> {
        let text = crate::step::output(&mut self.command(args))?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("sock")
    }

    fn import(&self) -> Result<()> {
        let root = self.dir.path().join("image");
        let tar = Command::new("sh").args(["-ec", IMAGE_ROOT, "sh"]).arg(&root).output()?;
        if !tar.status.success() {
            bail!("cannot pack the image: {}", String::from_utf8_lossy(&tar.stderr).trim_end());
        }
        let mut import = self.command(&["import", "-", Self::IMAGE]);
        let mut import = import.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        import.stdin.take().context("a pipe")?.write_all(&tar.stdout)?;
        if !import.wait()?.success() {
            bail!("{} does not take the image", self.kind.name());
        }
        Ok(())
    }
}

impl Drop for ContainerEngine {
    fn drop(&mut self) {
        self.users = None;
        if let Some(pid) = Pid::from_raw(self.keeper.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        drop(self.keeper.wait());
    }
}
