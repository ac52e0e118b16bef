use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::flags::Flags;
use crate::step::{cargo, has, in_ci, step};
use crate::{layers, licences, pages, setup};

/// `cargo xtask test`: everything, cheapest first.
pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let began = Instant::now();
    room();
    components()?;
    setup::task(Flags::new(Vec::new()))?;
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    layers::task(Flags::new(Vec::new()))?;
    licences::task(Flags::new(Vec::new()))?;
    pages::task(Flags::new(Vec::new()))?;
    step(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    )?;
    tests()?;
    places()?;
    step("doc tests", cargo().args(["test", "--workspace", "--doc", "--locked"]))?;
    let mut docs = cargo();
    docs.args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings");
    step("docs", &mut docs)?;
    if has("cargo-deny") {
        step("cargo deny", cargo().args(["deny", "check"]))?;
    } else {
        println!("cargo-deny is not here: licences were checked without it, advisories were not");
    }
    println!("all passed, {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// The tests proper. nextest ends a stuck test and says which one it was; without it the same tests run
/// under cargo's own runner, and a deadline ends them all.
fn tests() -> Result<()> {
    if has("cargo-nextest") {
        let profile = if in_ci() { "ci" } else { "default" };
        return step(
            "tests",
            cargo().args(["nextest", "run", "--workspace", "--locked", "--profile", profile]),
        );
    }
    println!("cargo-nextest is not here: the same tests run under `cargo test`, two at a time");
    let mut build = cargo();
    step("build the tests", build.args(["test", "--workspace", "--all-targets", "--locked", "--no-run"]))?;
    let mut run = Command::new("timeout");
    run.args(["--kill-after=10", "2400"]).arg(cargo().get_program()).current_dir(crate::step::root());
    step(
        "tests",
        run.args([
            "test",
            "--workspace",
            "--all-targets",
            "--locked",
            "--no-fail-fast",
            "--",
            "--test-threads=2",
        ]),
    )
}

/// The suite of the program once more on each of the other places: what is promised does not depend on where it runs.
fn places() -> Result<()> {
    for place in ["tmux", "docker", "podman"] {
        let mut run = cargo();
        run.env("WHARF_TEST_BACKEND", place);
        if has("cargo-nextest") {
            let profile = if in_ci() { "ci" } else { "default" };
            run.args(["nextest", "run", "--profile", profile]);
        } else {
            run.arg("test");
        }
        step(&format!("the program on {place}"), run.args(["--locked", "-p", "wharf", "--test", "cli"]))?;
    }
    Ok(())
}

/// What a run from nothing takes below `target`, and engines and agents besides.
const ROOM: u64 = 8 << 30;

/// Says so at first where the disk may not do: a build that runs out of it in the middle says odd things.
fn room() {
    let Ok(disk) = rustix::fs::statvfs(crate::step::root()) else { return };
    let free = disk.f_bavail * disk.f_frsize;
    if free < ROOM {
        let (free, room) = (free >> 30, ROOM >> 30);
        println!("little room: {free} GB are free on this disk, and a run from nothing takes up to {room}");
        println!("hint: `cargo clean`, here and in other clones");
    }
}

/// Formatter and linter are parts of the toolchain that a minimal one lacks.
fn components() -> Result<()> {
    let missing: Vec<&str> = [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")]
        .into_iter()
        .filter(|(program, _)| !has(program))
        .map(|(_, part)| part)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut add = Command::new("rustup");
    if has("rustup") && step("toolchain parts", add.args(["component", "add"]).args(&missing)).is_ok() {
        return Ok(());
    }
    bail!("the toolchain lacks {}: rustup component add {}", missing.join(" and "), missing.join(" "))
}
