//! Kills daemons and holders at random moments.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::Value;
use wharf_tool_support::instance::Instance;
use wharf_tool_support::process;

use super::agents::{Agents, wait_for};

/// Which of our processes are killed.
#[derive(Clone, Copy)]
pub(super) enum Victims {
    /// The daemon.
    Daemon,
    /// Holders, one after the other, each replaced before the next.
    Holders,
    /// Now a holder, now the daemon.
    Both,
}

impl Victims {
    /// Kills that many, each at a random moment, and returns how many it was.
    pub(super) fn kill(
        self,
        instance: &Instance,
        agents: &Agents,
        kills: usize,
        pause: Duration,
        random: &mut Rng,
    ) -> Result<usize> {
        let names = agents.names();
        let mut killed = 0;
        while killed < kills {
            let holder = match self {
                Self::Daemon => false,
                Self::Holders => true,
                Self::Both => random.bool(),
            };
            let moment = Duration::from_micros(random.u64(..=pause.as_micros() as u64));
            let done = if holder {
                let name = &names[random.usize(..names.len())];
                kill_holder(instance, name, moment)?
            } else {
                kill_daemon(instance, moment)?
            };
            killed += usize::from(done);
        }
        Ok(killed)
    }
}

/// The next command starts a daemon; it is killed `moment` later, whatever it is doing then.
fn kill_daemon(instance: &Instance, moment: Duration) -> Result<bool> {
    let mut pid = None;
    wait_for("a daemon runs", || {
        // A command of the chatter may have been faster and its daemon may be gone again: ask anew.
        instance.try_run(&["ls"])?;
        let status = instance.try_run(&["daemon", "status", "--json"])?;
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        pid = status["pid"].as_i64();
        Ok(pid.is_some())
    })?;
    std::thread::sleep(moment);
    let pid = pid.context("a daemon's pid")? as i32;
    let killed = process::kill_if(pid, &instance.mark())?;
    wait_for("the daemon is gone", || Ok(!process::lives(pid)))?;
    Ok(killed)
}

/// Kills one session's holder, and waits until another has taken its place.
fn kill_holder(instance: &Instance, name: &str, moment: Duration) -> Result<bool> {
    // The session's directory is the truth, and needs no daemon.
    let ticket = instance.home().join(".local/state/wharf/names").join(name).join("ticket.json");
    let holder = || -> Result<i32> {
        let ticket: Value = serde_json::from_slice(&std::fs::read(&ticket)?)?;
        Ok(ticket["holder"]["pid"].as_i64().unwrap_or(0) as i32)
    };
    // If the daemon is gone as well there is nobody to replace the holder: that one session is lost, as designed.
    wait_for(&format!("a daemon has {name}"), || {
        let shown = instance.try_run(&["show", name, "--json"])?;
        let session: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        Ok(session["state"] == "running")
    })?;
    let old = holder()?;
    std::thread::sleep(moment);
    let killed = process::kill_if(old, &instance.mark())?;
    wait_for(&format!("{name} has another holder"), || {
        let new = holder()?;
        Ok(new != 0 && new != old && process::lives(new))
    })?;
    Ok(killed)
}

impl fmt::Display for Victims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Daemon => "the daemon",
            Self::Holders => "holders",
            Self::Both => "the daemon and holders",
        })
    }
}
