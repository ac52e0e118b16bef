//! Kills our own processes at random moments while agents work, then accounts for every line.

mod account;
mod agents;
mod chatter;
mod disk;
mod everything;
mod ledger;
mod stage;
mod victims;
mod visitors;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fastrand::Rng;
use wharf_tool_support::flags::Flags;
use wharf_tool_support::instance::{self, Instance};

use self::agents::Agents;
use self::chatter::Chatter;
use self::stage::Stage;
use self::victims::Victims;

/// `cargo xtask chaos`
pub(crate) fn task(mut flags: Flags) -> Result<()> {
    let agents: usize = flags.value("agents")?.unwrap_or(50);
    let kills: usize = flags.value("kills")?.unwrap_or(200);
    let rate: u64 = flags.value("rate")?.unwrap_or(100_000);
    let seed: u64 = flags.value("seed")?.unwrap_or_else(|| u64::from(std::process::id()));
    // The longest that one kill waits for its moment.
    let pause: u64 = flags.value("pause")?.unwrap_or(300);
    let wharf: Option<PathBuf> = flags.value("wharf")?;
    let backend: String = flags.value("backend")?.unwrap_or_else(|| "local".to_owned());
    // Where the backend has containers and an engine of the caller's is meant: it must have a shell, and a C library
    // if the agent, which is this program, needs one.
    let image: Option<String> = flags.value("image")?;
    let (everything, disk_mib) = (flags.switch("everything"), flags.value("disk")?.unwrap_or(32));
    let victims = match (flags.switch("holders"), flags.switch("both")) {
        (false, false) => Victims::Daemon,
        (true, false) => Victims::Holders,
        (_, true) => Victims::Both,
    };
    flags.finish()?;

    let wharf = match wharf {
        Some(path) => path,
        None => instance::build_release()?,
    };
    if everything {
        disk::enter_namespace()?;
        let pause = Duration::from_millis(pause);
        return kill_everything(&wharf, everything::Run { agents, kills, rate, pause, disk_mib, seed });
    }
    println!("chaos: {agents} agents on {backend} at {rate} B/s, {kills} kills of {victims}, seed {seed}");
    let began = Instant::now();
    let mut random = Rng::with_seed(seed);
    let mut instance = Instance::new(&wharf)?;
    let stage = Stage::new(&backend, image)?;
    if let Some((name, value)) = stage.variable() {
        instance = instance.with_variable(name, value);
    }
    let instance = Arc::new(instance);
    let agents = Agents::start(&instance, &stage, agents, rate)?;
    println!("{:>6.1} s  agents run", began.elapsed().as_secs_f64());

    let chatter = Chatter::start(&instance, &stage, agents.names(), seed);
    let outcome = victims.kill(&instance, &agents, kills, Duration::from_millis(pause), &mut random);
    let mut chat = chatter.finish();
    let killed = outcome?;
    println!("{:>6.1} s  {killed} killed", began.elapsed().as_secs_f64());

    chat.look(&instance)?;
    let report = agents.finish(&instance, &chat)?;
    println!("{:>6.1} s  agents ended", began.elapsed().as_secs_f64());
    // The daemon takes containers away, so it is asked to end after that.
    let left = stage.must_be_empty().and_then(|()| instance.finish(Duration::from_secs(10)));

    print!("{report}");
    println!("{chat}");
    println!(
        "left behind           {}",
        left.as_ref().map_or_else(ToString::to_string, |()| "nothing".to_owned())
    );
    if report.faults() > 0 || chat.faults() > 0 || left.is_err() {
        bail!("chaos: something was lost (seed {seed})");
    }
    println!("chaos: nothing lost in {killed} kills");
    Ok(())
}

/// `cargo xtask chaos --everything`
fn kill_everything(wharf: &Path, run: everything::Run) -> Result<()> {
    let (began, seed) = (Instant::now(), run.seed);
    let everything::Run { agents, kills, rate, disk_mib, .. } = run;
    println!(
        "chaos: {agents} agents at {rate} B/s on a disk of {disk_mib} MiB, {kills} kills of everything, seed {seed}"
    );
    let instance = Instance::new(wharf)?;
    let report = everything::run(&instance, run)?;
    let left = instance.finish(Duration::from_secs(30));
    print!("{report}");
    println!("took                  {:.0} s", began.elapsed().as_secs_f64());
    println!(
        "left behind           {}",
        left.as_ref().map_or_else(ToString::to_string, |()| "nothing".to_owned())
    );
    if report.faults() > 0 || left.is_err() {
        bail!("chaos: something was lost without a word, or left (seed {seed})");
    }
    println!("chaos: nothing lost without a word in {} kills", report.killed());
    Ok(())
}
