//! Runs `wharf` in an instance of its own, and ends everything that it started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{self, Mark};
use crate::step::{cargo, output, step};

/// An instance of Wharf of its own: a temporary HOME, and nothing of the caller's.
pub struct Instance {
    wharf: PathBuf,
    home: TempDir,
    variables: Vec<(String, OsString)>,
}

impl Instance {
    /// An instance of this binary. Nothing runs until the first command.
    pub fn new(wharf: &Path) -> Result<Self> {
        // Short, because sockets live below it.
        let home = tempfile::Builder::new().prefix("wh").tempdir().context("a temporary directory")?;
        Ok(Self { wharf: wharf.to_path_buf(), home, variables: Vec::new() })
    }

    /// Gives every command of it a variable.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Its HOME.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A `wharf` command of this instance.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
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
    pub fn run(&self, args: &[&str]) -> Result<Vec<u8>> {
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
    pub fn try_run(&self, args: &[&str]) -> Result<Output> {
        self.command(args).output().with_context(|| format!("cannot run {}", self.wharf.display()))
    }

    /// Types something at a session; success means that it is in the terminal.
    pub fn write(&self, name: &str, text: &str) -> Result<Output> {
        self.try_run(&["write", name, text])
    }

    /// Runs a command and reads its JSON.
    pub fn json(&self, args: &[&str]) -> Result<Value> {
        serde_json::from_slice(&self.run(args)?)
            .with_context(|| format!("wharf {}: its JSON", args.join(" ")))
    }

    /// What every process of this instance carries.
    pub fn mark(&self) -> Mark {
        let mut line = OsString::from("HOME=");
        line.push(self.home.path());
        Mark { line, dir: Some(self.home.path().to_owned()) }
    }

    /// Every process of this instance: ours and those of its sessions.
    pub fn processes(&self) -> Vec<i32> {
        self.mark().carriers()
    }

    /// Ends every session and the daemon, and fails if anything is left after that.
    pub fn finish(&self, within: Duration) -> Result<()> {
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
        self.mark().kill_carriers();
    }
}

/// Builds the programs as users get them, and says where `wharf` is.
pub fn build_release() -> Result<PathBuf> {
    let mut build = cargo();
    build.args(BUILD).args(["--release", "--message-format=json-render-diagnostics"]);
    let messages = output(build.stderr(Stdio::inherit())).context("wharf does not build")?;
    let built = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = built.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    programs.find(|path| path.ends_with("wharf")).context("cargo built wharf, and it is nowhere")
}

/// The `wharf` beside one of our own programs. A build of the whole workspace has made both; what has not is made good.
pub fn build_beside(program: &Path) -> Result<PathBuf> {
    let wharf = program.with_file_name("wharf");
    if !wharf.is_file() || !wharf.with_file_name("wharf-holder").is_file() {
        let mut build = cargo();
        build.args(BUILD);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        step("build wharf", &mut build)?;
    }
    Ok(wharf)
}

/// The words that build the programs: the holder runs from beside `wharf`.
const BUILD: [&str; 5] = ["build", "--locked", "-p", "wharf", "--bins"];
