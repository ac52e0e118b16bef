//! Runs a task of this repository, or the program that does it. `cargo xtask` lists all of them.

mod crate_table;
mod layers;
mod licences;
mod metadata;
mod on_disk;
mod pages;
mod portable;
mod publish;
mod run;
mod runner;
mod setup;
mod sources;
mod supply;
mod test;
mod test_home;
mod words;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Error, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::{self, cargo, root};

/// A task: its name, what it does, and what does it.
type Task = (&'static str, &'static str, Doer);

enum Doer {
    /// A function of this program.
    Here(fn(Flags) -> Result<()>),
    /// Another program of this repository, given these words before the caller's.
    There(&'static str, &'static [&'static str]),
}

use Doer::{Here, There};

const TASKS: &[Task] = &[
    ("setup", "install what the tests need, or say what is missing", Here(setup::task)),
    ("test", "run every check and every test; what CI runs", Here(test::task)),
    ("layers", "check the dependencies of crates, and ARCHITECTURE.md", Here(layers::task)),
    ("licences", "check the licence of every dependency against deny.toml", Here(licences::task)),
    ("supply", "check where every dependency comes from: bans, sources, yanked versions", Here(supply::task)),
    (
        "pages",
        "check the tests that the docs name, the glossary, and the words of every source file",
        Here(pages::task),
    ),
    ("portable", "check the crates that claim other systems than Linux", Here(portable::task)),
    (
        "publish",
        "pack every crate as for a registry, and send none; `--verify` builds what was packed",
        Here(publish::task),
    ),
    (
        "chaos",
        "kill the daemon, holders or everything under load, then account for every line",
        There("wharf-stress", &["chaos"]),
    ),
    (
        "cycles",
        "start, end and remove sessions a thousand times, then look for what is left",
        There("wharf-stress", &["cycles"]),
    ),
    (
        "agents",
        "drive the real agents against a loopback model service, and count what arrived",
        There("wharf-agent-suite", &[]),
    ),
    ("bench", "measure Wharf beside tmux, dtach, screen and a bare C floor", There("wharf-bench", &[])),
    (
        "hostile",
        "measure what others wait while sessions misbehave in every way at once",
        There("wharf-stress", &["hostile"]),
    ),
];

fn main() -> ExitCode {
    step::end("xtask", run(std::env::args().skip(1).collect()))
}

fn run(mut words: Vec<String>) -> Result<()> {
    if words.is_empty() || matches!(words[0].as_str(), "help" | "-h" | "--help") {
        println!("cargo xtask TASK");
        for (name, about, _) in TASKS {
            println!("  {name:<10} {about}");
        }
        return Ok(());
    }
    let name = words.remove(0);
    let Some((_, _, doer)) = TASKS.iter().find(|(task, ..)| *task == name) else {
        bail!("there is no task {name:?}; `cargo xtask` lists them");
    };
    match doer {
        Here(run) => run(Flags::new(words)),
        There(program, first) => Err(become_program(program, first, &words)),
    }
}

/// Becomes a program of this repository, which cargo builds first: signals and the exit code are its own. The error is why not.
fn become_program(name: &str, first: &[&str], words: &[String]) -> Error {
    // In the caller's directory, from which the paths among the words lead.
    let mut run = Command::new(cargo().get_program());
    run.args(["run", "--quiet", "--manifest-path"]).arg(root().join("Cargo.toml"));
    run.args(["--package", name, "--"]).args(first).args(words);
    Error::new(run.exec()).context(format!("cannot run {name}"))
}
