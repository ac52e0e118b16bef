//! The real agents, unmodified, driven by the `wharf` command alone, against a model service on the loopback whose record
//! says what was really submitted.

mod agent;
mod case;
mod control;
mod kit;
mod messages;
mod npm;
mod settings;
mod stage;
mod survival;
mod table;
mod text;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::{instance, step};

use self::agent::{AGENTS, Agent};
use self::case::{CASES, Case, Verdict};
use self::kit::Kit;
use self::stage::Stage;
use self::table::Table;

fn main() -> ExitCode {
    step::end("wharf-agent-suite", run(Flags::new(std::env::args().skip(1).collect())))
}

/// `cargo xtask agents`
fn run(mut flags: Flags) -> Result<()> {
    let only: Option<String> = flags.value("only")?;
    let cases: Option<String> = flags.value("cases")?;
    let rounds: usize = flags.value("rounds")?.unwrap_or(1);
    let wharf: Option<PathBuf> = flags.value("wharf")?;
    // Agents are programs of their own: on a machine with room, several rounds go on at once.
    let jobs: usize = flags.value("jobs")?.unwrap_or(1);
    let install = flags.switch("install");
    let latest = flags.switch("latest");
    let write = flags.switch("write");
    let list = flags.switch("list");
    flags.finish()?;

    if list {
        for case in CASES {
            println!("{:<24} {}", case.name, case.about);
        }
        return Ok(());
    }
    let agents = chosen(AGENTS, only.as_deref(), |agent| agent.name)?;
    let cases = chosen(CASES, cases.as_deref(), |case| case.name)?;
    let kit = Kit::new(latest);
    for agent in &agents {
        if install {
            kit.install(agent)?;
        }
        kit.find(agent)?;
    }
    let wharf = match wharf {
        Some(path) => path.canonicalize().with_context(|| path.display().to_string())?,
        None => instance::build_release()?,
    };

    let table = Mutex::new(Table::new(&kit, &agents)?);
    let parts = (1..=rounds).flat_map(|round| agents.iter().map(move |agent| (*agent, round)));
    let parts: Mutex<VecDeque<(&'static Agent, usize)>> = Mutex::new(parts.collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let part = lock(&parts).pop_front();
                    let Some((agent, round)) = part else { break };
                    play(agent, &cases, round, &kit, &wharf, &table);
                }
            });
        }
    });
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    print!("{table}");
    if write {
        table.write()?;
    }
    if table.failed() > 0 {
        bail!("{} of {} cases failed", table.failed(), table.played());
    }
    Ok(())
}

/// All cases of one round with one agent. A case that failed leaves the agent in a state that nobody knows: the next
/// one gets another.
fn play(
    agent: &'static Agent,
    cases: &[&'static Case],
    round: usize,
    kit: &Kit,
    wharf: &Path,
    table: &Mutex<Table>,
) {
    let mut stage: Option<Stage> = None;
    for case in cases {
        let began = Instant::now();
        let verdict = (|| {
            if case.fresh {
                stage = None;
            }
            let stage = match &mut stage {
                Some(stage) => stage,
                empty => {
                    let fresh = Stage::start(agent, kit, wharf)?;
                    if !case.fresh {
                        fresh.settle()?;
                    }
                    empty.insert(fresh)
                }
            };
            stage.begin(round, case.name);
            (case.play)(stage)
        })();
        let took = began.elapsed().as_secs_f64();
        let word = match &verdict {
            Ok(Verdict::Passed) => "ok".to_owned(),
            Ok(Verdict::Absent(why)) => format!("–  {why}"),
            Err(error) => format!("FAILED: {error:#}"),
        };
        let mut report = format!("{:<9} {round:>3} {:<24} {took:>6.1} s  {word}", agent.name, case.name);
        if verdict.is_err()
            && let Some(stage) = stage.take()
        {
            report = format!("{report}\n{}", stage.evidence());
        }
        println!("{report}");
        lock(table).add(agent.name, case.name, &verdict);
    }
}

/// A case that panicked has said so; the others go on.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The items that a list of names asks for, or all.
fn chosen<T>(
    all: &'static [T],
    names: Option<&str>,
    name: impl Fn(&'static T) -> &'static str,
) -> Result<Vec<&'static T>> {
    let Some(names) = names else { return Ok(all.iter().collect()) };
    let find = |wanted: &str| {
        let known = || all.iter().map(&name).collect::<Vec<_>>().join(", ");
        all.iter()
            .find(|item| name(item) == wanted)
            .with_context(|| format!("{wanted:?} is none of {}", known()))
    };
    names.split(',').map(find).collect()
}
