//! Messages of every kind: exactly once, and exact.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::case::Verdict;
use crate::stage::Stage;
use crate::text;

/// Sends a text, and everything about it must be right.
fn send(stage: &mut Stage, text: &str) -> Result<Verdict> {
    let expected = stage.expected(text)?;
    stage.send(text, &[])?.confirmed()?;
    stage.got(&[expected])?;
    stage.settle()?;
    Ok(Verdict::Passed)
}

pub(crate) fn before_ready(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("{}: the first message", stage.tag());
    send(stage, &text)
}

pub(crate) fn one_line(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("{}: say something nice", stage.tag());
    send(stage, &text)
}

pub(crate) fn many_lines(stage: &mut Stage) -> Result<Verdict> {
    let text = text::many_lines(&stage.tag());
    send(stage, &text)
}

pub(crate) fn two_kilobytes(stage: &mut Stage) -> Result<Verdict> {
    let text = text::paragraph(&stage.tag(), 2048);
    send(stage, &text)
}

pub(crate) fn twenty_kilobytes(stage: &mut Stage) -> Result<Verdict> {
    let text = text::lines(&stage.tag(), 20_480);
    send(stage, &text)
}

pub(crate) fn two_hundred_lines(stage: &mut Stage) -> Result<Verdict> {
    let text = text::short_lines(&stage.tag(), 200);
    send(stage, &text)
}

pub(crate) fn unicode(stage: &mut Stage) -> Result<Verdict> {
    let text = text::unicode(&stage.tag());
    send(stage, &text)
}

pub(crate) fn shell_like(stage: &mut Stage) -> Result<Verdict> {
    let text = text::shell_like(&stage.tag(), "ran-by-itself");
    send(stage, &text)?;
    ensure!(!stage.has_file("ran-by-itself"), "a shell ran it");
    Ok(Verdict::Passed)
}

pub(crate) fn tabs_and_ends(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("  \t{}:\ttabs\t\tand  spaces\n\tindented\n  \t ", stage.tag());
    send(stage, &text)
}

/// What would break out of a paste is taken away or refused. It is never carried out.
pub(crate) fn escape_bytes(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("{} a\x1b[201~b\rc \x1b[31mred\x1b[0m \x07bell\x08 \x1b end", stage.tag());
    either(stage, &text)
}

pub(crate) fn leading_bang(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("!touch ran-by-bang # {}", stage.tag());
    either(stage, &text)?;
    ensure!(!stage.has_file("ran-by-bang"), "a shell ran it");
    Ok(Verdict::Passed)
}

pub(crate) fn last_backslash(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("{}: ends in a backslash \\", stage.tag());
    either(stage, &text)
}

pub(crate) fn last_mention(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("{}: ask @nobody", stage.tag());
    either(stage, &text)
}

/// A text that the profile hands over in some form, or refuses; then nothing may arrive.
fn either(stage: &mut Stage, text: &str) -> Result<Verdict> {
    if stage.expected(text).is_ok() {
        return send(stage, text);
    }
    stage.send(text, &[])?.refused()?;
    stage.settle()?;
    // Another one, to see that nothing was left in the composer.
    one_line(stage)
}

pub(crate) fn same_key(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("{}: only once", stage.tag());
    let key = stage.tag();
    let expected = stage.expected(&text)?;
    let first = stage.send(&text, &["--key", &key])?.confirmed()?;
    let second = stage.send(&text, &["--key", &key])?.confirmed()?;
    ensure!(first["id"] == second["id"], "two receipts: {} and {}", first["id"], second["id"]);
    stage.got(&[expected])?;
    stage.settle()?;
    Ok(Verdict::Passed)
}

pub(crate) fn two_senders(stage: &mut Stage) -> Result<Verdict> {
    let texts = ["left", "right"].map(|side| format!("{}: {side}\nand a second line {side}", stage.tag()));
    let expected = [stage.expected(&texts[0])?, stage.expected(&texts[1])?];
    let shared = &*stage;
    let (left, right) = std::thread::scope(|scope| {
        let left = scope.spawn(|| shared.send(&texts[0], &[]));
        let right = scope.spawn(|| shared.send(&texts[1], &[]));
        (left.join(), right.join())
    });
    for sent in [left, right] {
        sent.map_err(|_| anyhow::anyhow!("a sender panicked"))??.confirmed()?;
    }
    stage.got_in_any_order(&expected)?;
    stage.settle()?;
    Ok(Verdict::Passed)
}

pub(crate) fn while_working(stage: &mut Stage) -> Result<Verdict> {
    let first = format!("{}: [[slow 4]]", stage.tag());
    let second = format!("{}: meanwhile", stage.tag());
    let expected = [stage.expected(&first)?, stage.expected(&second)?];
    let cut = stage.cut();
    stage.send(&first, &[])?.confirmed()?;
    stage.until("working", Duration::from_secs(20))?;
    stage.send(&second, &[])?.confirmed()?;
    stage.got(&expected)?;
    stage.settle()?;
    ensure!(stage.cut() == cut, "the running turn was cut off");
    Ok(Verdict::Passed)
}

pub(crate) fn ask(stage: &mut Stage) -> Result<Verdict> {
    let text = format!("{}: what is it?", stage.tag());
    let expected = stage.expected(&text)?;
    let output = stage.run(&["ask", Stage::NAME, &text])?.stdout;
    stage.got(&[expected])?;
    let answer = String::from_utf8_lossy(&output);
    let wanted = format!("OK {}", stage.count());
    // Where an agent writes its answers down nowhere, it is what the screen shows.
    ensure!(answer.contains(&wanted), "the answer is {answer:?} and not {wanted:?}");
    stage.settle()?;
    Ok(Verdict::Passed)
}
