//! Turns that are stopped, and questions that are answered.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::case::Verdict;
use crate::stage::Stage;

const STATE_TIMEOUT: Duration = Duration::from_secs(20);

const NO_TOOLS: Verdict = Verdict::Absent("it runs no commands");

/// Begins a turn of half a minute, and waits until its words come.
fn long_turn(stage: &mut Stage) -> Result<()> {
    let text = format!("{}: [[slow 30]]", stage.tag());
    let expected = stage.expected(&text)?;
    stage.send(&text, &[])?.confirmed()?;
    stage.got(&[expected])?;
    stage.until("working", STATE_TIMEOUT)?;
    stage.until_words()
}

pub(crate) fn streaming(stage: &mut Stage) -> Result<Verdict> {
    holds(stage, "[[slow 6]]")
}

pub(crate) fn silent(stage: &mut Stage) -> Result<Verdict> {
    holds(stage, "[[silent 6]]")
}

/// The state does not waver in a turn of six seconds, and is idle soon after it.
fn holds(stage: &mut Stage, directive: &str) -> Result<Verdict> {
    let text = format!("{}: {directive}", stage.tag());
    let expected = stage.expected(&text)?;
    stage.send(&text, &[])?.confirmed()?;
    stage.got(&[expected])?;
    stage.until("working", STATE_TIMEOUT)?;
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        let shown = stage.show()?;
        ensure!(
            shown["state"] == "working",
            "in the middle of the turn: {} ({})",
            shown["state"],
            shown["state_evidence"]
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    stage.settle()?;
    ensure!(until.elapsed() < STATE_TIMEOUT, "the turn was over long before the state said so");
    Ok(Verdict::Passed)
}

/// The turn is over at once, by all that is known, and the next message arrives.
fn stopped(stage: &mut Stage, cut: usize) -> Result<Verdict> {
    let asked = Instant::now();
    if stage.agent().hangs_up {
        ensure!(stage.cut_after(cut, STATE_TIMEOUT), "the turn was not stopped");
    }
    stage.settle()?;
    ensure!(asked.elapsed() < STATE_TIMEOUT, "the turn ran on");
    crate::messages::one_line(stage)
}

pub(crate) fn interrupt(stage: &mut Stage) -> Result<Verdict> {
    let cut = stage.cut();
    long_turn(stage)?;
    stage.run(&["interrupt", Stage::NAME])?;
    stopped(stage, cut)
}

pub(crate) fn escape(stage: &mut Stage) -> Result<Verdict> {
    if !stage.agent().escape {
        return Ok(Verdict::Absent("Escape is no key of its own there"));
    }
    let cut = stage.cut();
    long_turn(stage)?;
    for press in 0..stage.presses() {
        if press > 0 {
            // Two at once are another key to a program that reads them together: a person takes this long.
            std::thread::sleep(Duration::from_millis(300));
        }
        stage.run(&["escape", Stage::NAME])?;
    }
    stopped(stage, cut)
}

/// A message that makes the agent ask whether it may make a file; the file's name.
fn question(stage: &mut Stage) -> Result<String> {
    let file = format!("made-by-{}", stage.tag());
    let text = format!("{}: [[tool touch {file}]]", stage.tag());
    let expected = stage.expected(&text)?;
    stage.send(&text, &[])?.confirmed()?;
    stage.got(&[expected])?;
    stage.until("asking", STATE_TIMEOUT)?;
    let shown = stage.show()?;
    ensure!(shown["state"] == "asking", "the state is {} and not asking", shown["state"]);
    Ok(file)
}

pub(crate) fn approve(stage: &mut Stage) -> Result<Verdict> {
    if !stage.agent().asks {
        return Ok(NO_TOOLS);
    }
    let file = question(stage)?;
    stage.run(&["approve", Stage::NAME])?;
    stage.settle()?;
    ensure!(stage.has_file(&file), "the command did not run");
    Ok(Verdict::Passed)
}

pub(crate) fn deny(stage: &mut Stage) -> Result<Verdict> {
    if !stage.agent().asks {
        return Ok(NO_TOOLS);
    }
    let file = question(stage)?;
    stage.run(&["deny", Stage::NAME])?;
    stage.settle()?;
    ensure!(!stage.has_file(&file), "the command ran");
    crate::messages::one_line(stage)
}

pub(crate) fn while_asking(stage: &mut Stage) -> Result<Verdict> {
    if !stage.agent().asks {
        return Ok(NO_TOOLS);
    }
    let file = question(stage)?;
    let text = format!("{}: yes, 1, y, go on", stage.tag());
    stage.send(&text, &["--timeout", "3"])?.not_sent()?;
    let shown = stage.show()?;
    ensure!(shown["state"] == "asking", "the prompt is gone: the state is {}", shown["state"]);
    ensure!(!stage.has_file(&file), "the message granted the command");
    stage.run(&["deny", Stage::NAME])?;
    stage.settle()?;
    ensure!(!stage.has_file(&file), "the command ran");
    crate::messages::one_line(stage)
}

pub(crate) fn queued_at_asking(stage: &mut Stage) -> Result<Verdict> {
    if !stage.agent().asks {
        return Ok(NO_TOOLS);
    }
    let file = question(stage)?;
    let text = format!("{}: after the question", stage.tag());
    let expected = stage.expected(&text)?;
    stage.send(&text, &["--no-wait"])?.queued()?;
    ensure!(!stage.has_file(&file), "the message granted the command");
    stage.run(&["approve", Stage::NAME])?;
    stage.got(&[expected])?;
    stage.delivered()?;
    stage.settle()?;
    ensure!(stage.has_file(&file), "the command did not run");
    Ok(Verdict::Passed)
}
