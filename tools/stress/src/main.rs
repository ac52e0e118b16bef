//! Puts Wharf under stress: its processes are killed, sessions come and go by the thousand, and some misbehave.

mod chaos;
mod counter;
mod cycles;
mod hostile;

use std::process::ExitCode;

use anyhow::{Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step;

fn main() -> ExitCode {
    step::end("wharf-stress", run(std::env::args().skip(1)))
}

fn run(mut words: impl Iterator<Item = String>) -> Result<()> {
    let run = match words.next().as_deref() {
        Some("chaos") => chaos::task,
        Some("cycles") => cycles::task,
        Some("hostile") => hostile::task,
        Some("counter") => counter::task,
        _ => bail!("say chaos, cycles, hostile or counter"),
    };
    run(Flags::new(words.collect()))
}
