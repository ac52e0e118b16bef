//! Starts, ends and removes sessions over and over beside one that lives on, then looks for what is left of them.

mod dress;
mod inventory;
mod round;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use wharf_tool_support::container_engine::{ContainerEngine, Kind};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::instance::{self, Instance};

use self::dress::Dress;
use self::inventory::Ground;
use self::round::Times;

/// What is opened once and kept is opened in these.
const WARM_UP_CYCLES: u64 = 20;
/// How long what is left may take to go.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// `cargo xtask cycles`
pub(crate) fn task(mut flags: Flags) -> Result<()> {
    let backend: String = flags.value("backend")?.unwrap_or_else(|| "local".to_owned());
    let count: u64 = flags.value("count")?.unwrap_or(1_000);
    let jobs: u64 = flags.value("jobs")?.unwrap_or(2);
    let wharf: Option<PathBuf> = flags.value("wharf")?;
    let mut dress = Dress {
        pipes: flags.switch("pipes"),
        nix: flags.switch("nix"),
        flake: String::new(),
        sandbox: flags.switch("sandbox"),
        backend,
    };
    flags.finish()?;
    let wharf = match wharf {
        Some(path) => path,
        None => instance::build_release()?,
    };
    let engine = Kind::of(&dress.backend).map(ContainerEngine::start).transpose()?;
    let mut instance = Instance::new(&wharf)?;
    if let Some(engine) = &engine {
        let (name, value) = engine.variable();
        instance = instance.with_variable(name, value);
    }
    let instance = dress.prepare(instance)?;
    let ground = Ground { instance: &instance, engine: engine.as_ref() };

    println!("cycles: {count} on {dress}, {jobs} at a time");
    instance.run(&dress.run("keeper"))?;
    cycle(&instance, &dress, 0..WARM_UP_CYCLES, jobs)?;
    let before = ground.settled(SETTLE_TIMEOUT)?;
    println!("before: {before}");
    let began = Instant::now();
    let times = cycle(&instance, &dress, WARM_UP_CYCLES..WARM_UP_CYCLES + count, jobs)?;
    println!("{times}, {:.0} s in all", began.elapsed().as_secs_f64());
    let left = ground.wait_for(&before, SETTLE_TIMEOUT)?;
    println!("after:  {}", ground.look()?);
    for thing in &left {
        println!("  left: {thing}");
    }
    // The one that lived on goes too, and with it everything.
    instance.run(&["rm", "--force", "keeper"])?;
    let last = ground.wait_for_none(SETTLE_TIMEOUT)?;
    for thing in &last {
        println!("  left at the end: {thing}");
    }
    instance.finish(Duration::from_secs(20))?;
    if !left.is_empty() || !last.is_empty() {
        bail!("cycles: {} things are left", left.len() + last.len());
    }
    println!("cycles: nothing left of {count}");
    Ok(())
}

/// Plays the rounds of these numbers, so many at a time.
fn cycle(instance: &Instance, dress: &Dress, numbers: std::ops::Range<u64>, jobs: u64) -> Result<Times> {
    let next = AtomicU64::new(numbers.start);
    let play = || -> Result<Times> {
        let mut times = Times::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(times);
            }
            round::play(instance, dress, number, &mut times)?;
        }
    };
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(play)).collect();
        let mut all = Times::default();
        for player in players {
            all.add(player.join().unwrap_or_else(|_| bail!("a player panicked"))?);
        }
        Ok(all)
    })
}
