//! What everybody else waits while hostile sessions misbehave in every way at once.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wharf_testing::hostile::AT_ONCE;
use wharf_tool_support::container_engine::{ContainerEngine, Kind};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::instance::{self, Instance};
use wharf_tool_support::step::cargo;

/// What a command about somebody else shall take at most.
const GOAL_TIME: Duration = Duration::from_millis(200);
/// How long the hostile ones may take until all of them are.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// `cargo xtask hostile [--place local|sandbox|docker|podman,…] [--count N] [--wharf PATH]`
pub(crate) fn task(mut flags: Flags) -> Result<()> {
    let places: String = flags.value("place")?.unwrap_or_else(|| "docker,sandbox".to_owned());
    let count: usize = flags.value("count")?.unwrap_or(50);
    let wharf: Option<PathBuf> = flags.value("wharf")?;
    flags.finish()?;
    let wharf = wharf.map_or_else(instance::build_release, Ok)?;
    let program = program()?;
    let mut missed = Vec::new();
    for place in places.split(',') {
        let longest = wait_beside(place, count, &wharf, &program)?;
        let met = longest <= GOAL_TIME;
        println!("the goal is {} ms: {}", GOAL_TIME.as_millis(), if met { "met" } else { "missed" });
        if !met {
            missed.push(format!("{place} ({} ms)", longest.as_millis()));
        }
    }
    if !missed.is_empty() {
        bail!("others wait longer than {} ms beside {}", GOAL_TIME.as_millis(), missed.join(", "));
    }
    Ok(())
}

/// The longest that a command about somebody else takes while sessions are hostile in a place.
fn wait_beside(place: &str, count: usize, wharf: &Path, program: &Path) -> Result<Duration> {
    let engine = Kind::of(place).map(ContainerEngine::start).transpose()?;
    let mut instance = Instance::new(wharf)?;
    if let Some(engine) = &engine {
        let (name, value) = engine.variable();
        instance = instance.with_variable(name, value);
    }
    instance.run(&["run", "-d", "--name", "healthy", "-b", "local", "--", "cat"])?;
    for number in 0..2 * count {
        instance.run(&["run", "-d", "--name", &format!("other-{number}"), "-b", "local", "--", "cat"])?;
    }
    println!("what others wait, {count} times each, in milliseconds: median / 95 % / longest");
    measure(&instance, "nobody is hostile", 0..count)?;
    start(&instance, place, program)?;
    let title = format!("{} hostile sessions, each in {place}", AT_ONCE.len());
    let longest = measure(&instance, &title, count..2 * count)?;
    // What they made may be deeper than what removes a temporary directory can walk.
    for verb in ["kill", "rm"] {
        let names = AT_ONCE.iter().map(|(name, _)| *name);
        drop(instance.try_run(&std::iter::once(verb).chain(names).collect::<Vec<_>>())?);
    }
    Ok(longest)
}

/// The program that attacks, as the tests have it.
fn program() -> Result<PathBuf> {
    let status =
        cargo().args(["build", "--locked", "-p", "wharf-testing", "--bin", "wharf-hostile"]).status();
    if !status.context("cargo build")?.success() {
        bail!("wharf-hostile does not build");
    }
    let beside = std::env::current_exe()?.with_file_name("wharf-hostile");
    if beside.is_file() { Ok(beside) } else { bail!("{} is not there", beside.display()) }
}

/// Starts every kind of misbehaviour, and waits until each has begun.
fn start(instance: &Instance, place: &str, program: &Path) -> Result<()> {
    let reports = instance.home().join("reports");
    let work = instance.home().join("work");
    std::fs::create_dir(&work)?;
    let (work, writable) = (work.display().to_string(), reports.display().to_string());
    std::fs::create_dir(&reports)?;
    let mount = format!("{}:/hostile:ro", program.display());
    let (shared, told) =
        (format!("{}:/reports", reports.display()), format!("HOSTILE_REPORTS={}", reports.display()));
    let inside = program.display().to_string();
    for (name, words) in AT_ONCE {
        let mut args = vec!["run", "-d", "--name", name];
        if Kind::of(place).is_some() {
            args.extend([
                "-b",
                place,
                "--image",
                ContainerEngine::IMAGE,
                "--network",
                "none",
                "-v",
                &mount,
                "-v",
                &shared,
            ]);
            args.extend(["-e", "HOSTILE_REPORTS=/reports", "--", "/hostile"]);
        } else {
            args.extend(["-b", "local", "-e", &told]);
            match place {
                "local" => {}
                "sandbox" => {
                    let named = ["--sandbox-read", &inside, "--sandbox-write", &writable];
                    args.extend(["--sandbox", "-w", &work]);
                    args.extend(named);
                }
                _ => bail!("there is no place {place:?}"),
            }
            args.extend(["--", &inside]);
        }
        args.extend(words.split(' '));
        instance.run(&args)?;
    }
    let deadline = Instant::now() + START_TIMEOUT;
    for (name, words) in AT_ONCE {
        let lines = words.matches(" + ").count() + 1;
        let told = || std::fs::read_to_string(reports.join(name)).unwrap_or_default().lines().count();
        while told() < lines {
            if Instant::now() > deadline {
                bail!("{name} never began: it told {} of {lines}", told());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// Measures, prints, and gives the longest of all.
fn measure(instance: &Instance, title: &str, others: std::ops::Range<usize>) -> Result<Duration> {
    println!("{title}:");
    let mut longest = Duration::ZERO;
    let names: Vec<String> = others.map(|number| format!("other-{number}")).collect();
    let mut line = |what: &str, args: &dyn Fn(&str) -> Vec<String>| -> Result<()> {
        let mut took = Vec::with_capacity(names.len());
        for name in &names {
            let words = args(name);
            let began = Instant::now();
            instance.run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
            took.push(began.elapsed());
        }
        took.sort_unstable();
        let at = |share: usize| took.get((took.len() - 1) * share / 100).copied().unwrap_or_default();
        let shown = [at(50), at(95), at(100)].map(|time| format!("{:.1}", time.as_secs_f64() * 1_000.0));
        println!("  {what:<5} {}", shown.join(" / "));
        longest = longest.max(at(100));
        Ok(())
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    line("ls", &|_| words(&["ls"]))?;
    line("send", &|name| words(&["send", "healthy", name, "--no-wait"]))?;
    line("kill", &|name| words(&["kill", name]))?;
    Ok(longest)
}
