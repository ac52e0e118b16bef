//! Installs the real agents below `target`, and finds their programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wharf_tool_support::step::{output, root, step};

use crate::agent::{Agent, Package};
use crate::npm;

/// Where the agents are installed: beside what is built here, one directory a version. Nothing of it is in the user's HOME.
pub(crate) struct Kit {
    dir: PathBuf,
    latest: bool,
}

impl Kit {
    /// The directory. `latest` takes the newest version of each agent and not the one that the profiles were written against.
    pub(crate) fn new(latest: bool) -> Self {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        Self { dir: root().join(target).join("agents"), latest }
    }

    /// The directory with the agent's program.
    pub(crate) fn find(&self, agent: &Agent) -> Result<PathBuf> {
        let bin = self.bin(agent);
        if !bin.join(agent.program).exists() {
            bail!("{} is not installed: cargo xtask agents --install --only {}", agent.name, agent.name);
        }
        Ok(bin)
    }

    /// What the agent says of its version.
    pub(crate) fn version(&self, agent: &Agent) -> Result<String> {
        let text = output(Command::new(self.find(agent)?.join(agent.program)).arg("--version"))?;
        let line = text.lines().last().unwrap_or_default();
        let number = line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        Ok(number.unwrap_or(line).to_owned())
    }

    /// Installs an agent, unless it is there.
    pub(crate) fn install(&self, agent: &Agent) -> Result<()> {
        if !self.latest && self.find(agent).is_ok() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.dir).with_context(|| self.dir.display().to_string())?;
        let dir = self.place(agent);
        // Built beside its place, so that a half of one is never taken for a whole.
        let half = dir.with_extension(format!("part-{}", std::process::id()));
        let made = self.fill(agent, &half);
        if made.is_err() {
            let _ = std::fs::remove_dir_all(&half);
        }
        made?;
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::rename(&half, &dir).with_context(|| format!("cannot put {} in place", dir.display()))
    }

    fn fill(&self, agent: &Agent, dir: &Path) -> Result<()> {
        let title = format!("install {}", agent.name);
        let wanted = |name: &str, sign: &str| {
            if self.latest { name.to_owned() } else { format!("{name}{sign}{}", agent.version) }
        };
        match &agent.package {
            Package::Npm { name, script } => {
                let mut npm = npm::command(&self.dir)?;
                // Its cache of what it fetched goes when the agent is in place: it is fetched once.
                let cache = dir.join("npm-cache");
                npm.arg("--cache").arg(&cache).args([
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--no-save",
                    "--loglevel",
                    "error",
                    "--prefix",
                ]);
                step(&title, npm.arg(dir).arg(wanted(name, "@")))?;
                std::fs::remove_dir_all(&cache).with_context(|| cache.display().to_string())?;
                if let Some(script) = script {
                    let package = dir.join("node_modules").join(name);
                    step("put its program in place", Command::new("node").arg(script).current_dir(package))?;
                }
            }
            Package::Pip { name } => {
                // A virtual environment knows its own path: it is made where it stays.
                let stays = self.place(agent);
                step("make an environment", Command::new("python3").args(["-m", "venv"]).arg(&stays))?;
                let mut pip = Command::new(stays.join("bin/pip"));
                step(&title, pip.args(["install", "--quiet"]).arg(wanted(name, "==")))?;
                std::fs::rename(&stays, dir)?;
            }
        }
        Ok(())
    }

    fn place(&self, agent: &Agent) -> PathBuf {
        let version = if self.latest { "latest" } else { agent.version };
        self.dir.join(format!("{}-{version}", agent.name))
    }

    fn bin(&self, agent: &Agent) -> PathBuf {
        let place = self.place(agent);
        match agent.package {
            Package::Npm { .. } => place.join("node_modules/.bin"),
            Package::Pip { .. } => place.join("bin"),
        }
    }
}
