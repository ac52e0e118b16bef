//! Makes the directory of one benchmark run, and finds the processes that it started.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use wharf_tool_support::process::{self, Mark};
use wharf_tool_support::step::root;

/// A directory of one run: programs, sockets, homes. Everything started from here carries its mark.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("wb").tempdir().context("a temporary directory")?;
        for sub in ["screen", "tmux", "dtach", "floor", "home"] {
            let path = dir.path().join(sub);
            std::fs::create_dir(&path)?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        }
        let place = Self { dir };
        for program in ["floor", "command"] {
            let source = root().join("tools/bench/c").join(program).with_extension("c");
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-static", "-o"]).arg(place.program(program)).arg(&source);
            if !cc.status().context("cc")?.success() {
                bail!("{} does not compile", source.display());
            }
        }
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A compiled program of ours.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.bin"))
    }

    /// A command that carries the mark and touches nothing of the user's.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("WHARF_BENCH", self.dir.path())
            .env("HOME", self.dir.path().join("home"))
            .env("SCREENDIR", self.dir.path().join("screen"))
            .env("TMUX_TMPDIR", self.dir.path().join("tmux"))
            .env("TERM", "xterm-256color")
            .env_remove("TMUX")
            .env_remove("STY")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Every process that was started from here and runs that program.
    pub(crate) fn running(&self, program: &str) -> Vec<i32> {
        let is = |pid: &i32| {
            process::program(*pid).is_some_and(|path| path.file_name().is_some_and(|name| name == program))
        };
        self.mark().carriers().into_iter().filter(is).collect()
    }

    fn mark(&self) -> Mark {
        let mut line = OsString::from("WHARF_BENCH=");
        line.push(self.dir.path());
        Mark { line, dir: None }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.mark().kill_carriers();
    }
}
