//! The daemon dies, and nothing else does.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::case::Verdict;
use crate::stage::Stage;

pub(crate) fn daemon_killed(stage: &mut Stage) -> Result<Verdict> {
    let texts = ["before", "after"].map(|when| format!("{}: {when} the kill", stage.tag()));
    let expected = [stage.expected(&texts[0])?, stage.expected(&texts[1])?];
    let pid = stage.show()?["pid"].clone();
    stage.send(&texts[0], &[])?.confirmed()?;
    stage.kill_daemon()?;
    stage.send(&texts[1], &[])?.confirmed()?;
    stage.got(&expected)?;
    stage.settle()?;
    ensure!(stage.show()?["pid"] == pid, "the agent is another process");
    Ok(Verdict::Passed)
}

pub(crate) fn killed_in_queue(stage: &mut Stage) -> Result<Verdict> {
    let first = format!("{}: [[slow 3]]", stage.tag());
    let second = format!("{}: waits in the queue", stage.tag());
    let expected = [stage.expected(&first)?, stage.expected(&second)?];
    stage.send(&first, &[])?.confirmed()?;
    stage.until("working", Duration::from_secs(20))?;
    stage.send(&second, &["--no-wait"])?.queued()?;
    stage.kill_daemon()?;
    // Any command starts the next daemon, which finds the queue on disk.
    stage.show()?;
    stage.got(&expected)?;
    stage.delivered()?;
    stage.settle()?;
    Ok(Verdict::Passed)
}
