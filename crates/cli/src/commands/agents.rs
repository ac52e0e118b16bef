//! `wharf agents`: lists the agents that have a profile, and which of them are installed.

use wharf_api::AgentSummary;
use wharf_model::Failure;

use crate::dispatch::Serve;
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, output, versions};

/// Arguments of `agents`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Programs are looked for in this shell's PATH, and asked with --version.")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let agents = known()?;
    if args.json {
        output::json(&agents)?;
        return Ok(0);
    }
    let mut table = Table::new(&["NAME", "TITLE", "VERSION", "PROGRAMS", "INSTALLED"]);
    let mut off = Vec::new();
    for agent in agents {
        off.extend(agent.switched_off.iter().map(|what| format!("{}: {what}", agent.name)));
        let dash = || "-".to_owned();
        table.row([
            agent.name,
            agent.title,
            agent.version.unwrap_or_else(dash),
            agent.programs.join(" "),
            agent.installed.unwrap_or_else(dash),
        ]);
    }
    output::table(&table)?;
    for what in off {
        output::note(format!("warning: switched off, because it takes too long: {what}"));
    }
    Ok(0)
}

/// The agents whose profiles are known, with what of them is installed here.
pub(super) fn known() -> Result<Vec<AgentSummary>, Failure> {
    let here = std::env::current_dir().ok();
    let here = here.as_deref().and_then(std::path::Path::to_str);
    let mut agents = call::again(async |client| client.agents(here).await)?;
    // The daemon has the PATH of whoever started it, and runs nothing for the sake of a list.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find =
        |agent: &AgentSummary| agent.programs.iter().find_map(|program| versions::installed(program, &path));
    let programs: Vec<_> = agents.iter().map(find).collect();
    let versions = versions::of(&programs);
    for ((agent, program), version) in agents.iter_mut().zip(programs).zip(versions) {
        agent.installed = program.map(|program| program.display().to_string());
        agent.version = version;
    }
    Ok(agents)
}
