//! Runs a command on a pseudo-terminal for the benchmark, and times its echo.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::contestant::{Line, Reader};
use crate::kept::Kept;

/// A command in a terminal whose other end is ours: what a person would sit at.
pub(crate) struct Terminal {
    master: File,
    child: Kept,
}

impl Terminal {
    /// Starts a command. `setsid` makes the terminal its own, so that it hears of sizes and hang-ups.
    pub(crate) fn start(command: &Command) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 })?;
        let slave = open(ptsname(&master, Vec::new())?, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
        let mut wrapped = Command::new("setsid");
        wrapped
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        let child = wrapped.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave).spawn();
        Ok(Self { master: File::from(master), child: Kept(child.context("setsid")?) })
    }

    /// Reads what is there until nothing has come for `quiet`.
    pub(crate) fn settle(&mut self, quiet: Duration) -> Result<()> {
        let mut bytes = [0; 16384];
        while readable(&self.master, quiet)? {
            if self.master.read(&mut bytes)? == 0 {
                bail!("the terminal was closed");
            }
        }
        Ok(())
    }

    /// As something to drain.
    pub(crate) fn into_reader(self) -> Reader {
        Reader { from: OwnedFd::from(self.master), process: Some(self.child) }
    }
}

impl Line for Terminal {
    fn round_trip(&mut self, byte: u8) -> Result<Duration> {
        self.settle(Duration::from_millis(1))?;
        let began = Instant::now();
        self.master.write_all(&[byte])?;
        let mut bytes = [0; 4096];
        loop {
            if !readable(&self.master, Duration::from_secs(5))? {
                bail!("no echo within 5 s");
            }
            let length = self.master.read(&mut bytes)?;
            if bytes[..length].contains(&byte) {
                return Ok(began.elapsed());
            }
        }
    }
}

pub(crate) fn readable(from: &impl AsFd, within: Duration) -> Result<bool> {
    let mut fds = [PollFd::new(from, PollFlags::IN)];
    let within = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
    Ok(poll(&mut fds, Some(&within))? > 0)
}
