//! Every task of this repository. `cargo xtask` lists them.

mod agents;
mod bench;
mod chaos;
mod container_engine;
mod counter;
mod cycles;
mod flags;
mod hostile;
mod instance;
mod layers;
mod licences;
mod metadata;
mod pages;
mod process;
mod publish;
mod random;
mod run;
mod runner;
mod setup;
mod step;
mod supply;
mod test;
mod test_home;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::flags::Flags;

/// A task: its name, what it does, and the function.
struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(Flags) -> Result<()>,
}

const TASKS: &[Task] = &[
    Task { name: "setup", about: "install what the tests need, or say what is missing", run: setup::task },
    Task { name: "test", about: "run every check and every test; what CI runs", run: test::task },
    Task { name: "layers", about: "check that crate dependencies point downwards only", run: layers::task },
    Task {
        name: "licences",
        about: "check the licence of every dependency against deny.toml",
        run: licences::task,
    },
    Task {
        name: "supply",
        about: "check where every dependency comes from: bans, sources, yanked versions",
        run: supply::task,
    },
    Task {
        name: "pages",
        about: "check the tests that the docs name, and the first line of every source file",
        run: pages::task,
    },
    Task {
        name: "publish",
        about: "pack every crate as for a registry, and send none; `--verify` builds what was packed",
        run: publish::task,
    },
    Task {
        name: "chaos",
        about: "kill the daemon, holders or everything under load, then account for every line",
        run: chaos::task,
    },
    Task {
        name: "cycles",
        about: "start, end and remove sessions a thousand times, then look for what is left",
        run: cycles::task,
    },
    Task {
        name: "agents",
        about: "drive the real agents against a loopback model service, and count what arrived",
        run: agents::task,
    },
    Task {
        name: "bench",
        about: "measure Wharf beside tmux, dtach, screen and a bare C floor",
        run: bench::task,
    },
    Task {
        name: "hostile",
        about: "measure what others wait while sessions misbehave in every way at once",
        run: hostile::task,
    },
    Task { name: "counter", about: "the agent that the chaos run starts", run: counter::task },
];

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut words: Vec<String>) -> Result<()> {
    if words.is_empty() || matches!(words[0].as_str(), "help" | "-h" | "--help") {
        println!("cargo xtask TASK");
        for task in TASKS {
            println!("  {:<10} {}", task.name, task.about);
        }
        return Ok(());
    }
    let name = words.remove(0);
    match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(Flags::new(words)),
        None => bail!("there is no task {name:?}; `cargo xtask` lists them"),
    }
}
