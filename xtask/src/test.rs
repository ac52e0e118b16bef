//! Runs every step of CI in order, and lists what failed.

use std::process::Command;

use anyhow::{Context, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::{cargo, has, in_ci, step};

use crate::run::Run;
use crate::runner::Runner;
use crate::test_home::TestHome;
use crate::{layers, licences, pages, portable, publish, setup, supply};

/// `cargo xtask test`: everything, cheapest first. `--only STEP,…` takes some steps alone, `--package NAME,…` tests some
/// crates alone, `--filter TEXT` the tests with this in their name, and `--without-nextest` does as if it were not installed.
pub(crate) fn task(mut flags: Flags) -> Result<()> {
    let list = |text: Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
    };
    let only = list(flags.value("only")?);
    let packages = list(flags.value("package")?);
    let filter: String = flags.value("filter")?.unwrap_or_default();
    let nextest = !flags.switch("without-nextest") && has("cargo-nextest");
    flags.finish()?;
    room();
    let home = TestHome::new()?;
    let tests = Tests { home: &home, nextest, packages, filter };
    let none = || Flags::new(Vec::new());

    let mut run = Run::new(only);
    run.step("toolchain", components);
    run.step("setup", || setup::task(none()));
    run.step("format", || finish(cargo().args(["fmt", "--all", "--check"])));
    run.step("layers", || layers::task(none()));
    run.step("licences", || licences::task(none()));
    run.step("supply", || supply::task(none()));
    run.step("pages", || pages::task(none()));
    run.step("packages", publish::check);
    run.step("clippy", || {
        finish(cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
    });
    run.step("features", features);
    run.step("portable", || portable::task(none()));
    run.step("tests", || tests.all());
    for place in ["tmux", "docker", "podman"] {
        run.step(place, || tests.program_on(place));
    }
    run.step("doctests", || finish(home.settle(cargo().args(["test", "--workspace", "--doc", "--locked"]))));
    run.step("docs", || {
        let mut docs = cargo();
        docs.args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings");
        finish(&mut docs)
    });
    run.step("deny", || {
        if !has("cargo-deny") {
            println!("cargo-deny is not here: all but advisories were checked without it");
            return Ok(());
        }
        // Advisories want a database that is fetched by hand: `cargo deny check advisories --disable-fetch`.
        finish(cargo().args(["deny", "check", "bans", "licenses", "sources"]))
    });
    for (reason, count) in home.reasons() {
        println!("left out: {count} tests: {reason}");
    }
    let left = home.clear();
    show("left behind, and ended or removed", &left.inside);
    show("left in the home that programs were given", &left.in_home);
    show("new since the run began, whoever made it", &left.outside);
    run.finish()
}

/// What somebody who embeds the daemon may leave out: all of it, all but one place, and what one part of a place has a
/// feature for.
fn features() -> Result<()> {
    for package in ["wharf", "wharf-container"] {
        let mut lint = cargo();
        lint.args(["clippy", "--package", package, "--no-default-features", "--locked"]);
        finish(lint.args(["--", "-D", "warnings"]))
            .with_context(|| format!("{package} without its features"))?;
    }
    let mut client = cargo();
    client.args(["check", "--package", "wharf-holder-client", "--no-default-features", "--locked"]);
    finish(&mut client).context("wharf-holder-client without its features")?;
    for feature in ["docker", "tmux", "nix", "sandbox"] {
        let mut check = cargo();
        check.args(["check", "--package", "wharf-server", "--no-default-features", "--locked"]);
        finish(check.args(["--features", feature]))
            .with_context(|| format!("wharf-server with {feature}"))?;
    }
    Ok(())
}

/// Says what was left, as far as a person would read.
fn show(what: &str, left: &[String]) {
    for one in left.iter().take(MAX_LEFT_SHOWN) {
        println!("{what}: {one}");
    }
    if left.len() > MAX_LEFT_SHOWN {
        println!("and {} more", left.len() - MAX_LEFT_SHOWN);
    }
}

/// Runs a command that must succeed.
fn finish(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{status}");
    }
    Ok(())
}

/// How much of what the tests left is shown.
const MAX_LEFT_SHOWN: usize = 20;

/// How the tests are run.
struct Tests<'a> {
    home: &'a TestHome,
    nextest: bool,
    /// The only crates that are wanted; all of them where this is empty.
    packages: Vec<String>,
    filter: String,
}

impl Tests<'_> {
    /// The tests proper.
    fn all(&self) -> Result<()> {
        let packages: Vec<&str> = self.packages.iter().flat_map(|name| ["--package", name]).collect();
        self.run(if packages.is_empty() { &["--workspace"] } else { &packages }, None)
    }

    /// The suite of the program once more on another place: what is promised does not depend on where it runs.
    fn program_on(&self, place: &str) -> Result<()> {
        self.run(&["--package", "wharf", "--test", "cli"], Some(place))
    }

    /// nextest where it is installed, which ends a stuck test and says which one it was; else our own small one.
    fn run(&self, words: &[&str], place: Option<&str>) -> Result<()> {
        let settle = |command: &mut Command| {
            self.home.settle(command);
            command.envs(place.map(|place| ("WHARF_TEST_BACKEND", place)));
        };
        if self.nextest {
            let mut run = cargo();
            let profile = if in_ci() { "ci" } else { "default" };
            run.args(["nextest", "run", "--no-fail-fast", "--locked", "--profile", profile]).args(words);
            if !self.filter.is_empty() {
                run.arg(&self.filter);
            }
            settle(&mut run);
            return finish(&mut run);
        }
        println!("cargo-nextest is not here: the same tests run without it");
        Runner::build(words, &settle)?.run(&self.filter, &settle)
    }
}

/// What a run from nothing takes below `target`, and engines and agents besides.
const NEEDED_BYTES: u64 = 8 << 30;

/// Says so at first where the disk may not do: a build that runs out of it in the middle says odd things.
fn room() {
    let Ok(disk) = rustix::fs::statvfs(wharf_tool_support::step::root()) else { return };
    let free = disk.f_bavail * disk.f_frsize;
    if free < NEEDED_BYTES {
        let (free, room) = (free >> 30, NEEDED_BYTES >> 30);
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
