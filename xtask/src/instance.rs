//! Runs `wharf` in an instance of its own, and ends everything that it started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{self, Mark};
use crate::step::cargo;

/// An instance of Wharf of its own: a temporary HOME, and nothing of the caller's.
pub(crate) struct Instance {
    wharf: PathBuf,
    home: TempDir,
    variables: Vec<(String, OsString)>,
}

impl Instance {
    /// An instance of this binary. Nothing runs until the first command.
    pub(crate) fn new(wharf: &Path) -> Result<Self> {
        // Short, because sockets live below it.
        let home = tempfile::Builder::new().prefix("wh").tempdir().context("a temporary directory")?;
        Ok(Self { wharf: wharf.to_path_buf(), home, variables: Vec::new() })
    }

    /// Gives every command of it a variable.
    pub(crate) fn with_variable(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Its HOME.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A `wharf` command of this instance.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.wharf);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("XDG_") || text.starts_with("WHARF_") {
                command.env_remove(&name);
            }
        }
        command.args(args).env("HOME", self.home.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn run(&self, args: &[&str]) -> Result<Vec<u8>> {
        let output = self.try_run(args)?;
        if !output.status.success() {
            bail!(
                "wharf {}: {}: {}",
                args.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim_end()
            );
        }
        Ok(output.stdout)
    }

    /// Runs a command that may fail.
    pub(crate) fn try_run(&self, args: &[&str]) -> Result<Output> {
        self.command(args).output().with_context(|| format!("cannot run {}", self.wharf.display()))
    }

    /// Types something at a session; success means that it is in the terminal.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<Output> {
        self.try_run(&["write", name, text])
    }

    /// Runs a command and reads its JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Result<Value> {
        serde_json::from_slice(&self.run(args)?)
            .with_context(|| format!("wharf {}: its JSON", args.join(" ")))
    }

    /// What every process of this instance carries.
    pub(crate) fn mark(&self) -> Mark {
        let mut line = OsString::from("HOME=");
        line.push(self.home.path());
        Mark { line, dir: Some(self.home.path().to_owned()) }
    }

    /// Every process of this instance: ours and those of its sessions.
    pub(crate) fn processes(&self) -> Vec<i32> {
        self.mark().carriers()
    }

    /// Ends every session and the daemon, and fails if anything is left after that.
    pub(crate) fn finish(&self, within: Duration) -> Result<()> {
        self.run(&["kill", "--all"])?;
        self.run(&["daemon", "stop"])?;
        let deadline = Instant::now() + within;
        loop {
            let left: Vec<i32> = self.processes().into_iter().filter(|pid| process::lives(*pid)).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let shown: Vec<String> =
                    left.iter().map(|pid| format!("{pid} {}", process::command_line(*pid))).collect();
                bail!("{} processes are left behind:\n  {}", left.len(), shown.join("\n  "));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// However a run ends, what it started goes. Wharf ends its sessions, as only it knows their cgroups; whatever is left of a
/// run that went wrong carries the mark of a directory that is ours alone.
impl Drop for Instance {
    fn drop(&mut self) {
        if self.home.path().join(".local/state/wharf/sessions").exists() {
            let _ = self.try_run(&["kill", "--all"]);
            let _ = self.try_run(&["daemon", "stop"]);
        }
        for _ in 0..50 {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            for pid in left {
                drop(process::kill_if(pid, &self.mark()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Builds the binaries as users get them, and says where they are.
pub(crate) fn build_release() -> Result<PathBuf> {
    let mut build = cargo();
    let status = build.args(["build", "--release", "--locked", "-p", "wharf", "--bins"]).status();
    if !status.context("cargo build")?.success() {
        bail!("wharf does not build");
    }
    let target = target_directory()?;
    let triple = target.join(format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    let wharf = [triple, target].into_iter().map(|dir| dir.join("release/wharf")).find(|path| path.is_file());
    wharf.context("cargo built wharf, and it is nowhere")
}

fn target_directory() -> Result<PathBuf> {
    let text = crate::step::output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    Ok(PathBuf::from(metadata["target_directory"].as_str().context("a target directory")?))
}
