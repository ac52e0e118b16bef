use crate::dispatch::Serve;
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `agents`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let here = std::env::current_dir().ok();
    let here = here.as_deref().and_then(std::path::Path::to_str);
    let agents = call::again(async |client| client.agents(here).await)?;
    if args.json {
        output::json(&agents)?;
        return Ok(0);
    }
    let mut table = Table::new(&["NAME", "TITLE", "PROGRAMS", "INSTALLED"]);
    for agent in agents {
        table.row([
            agent.name,
            agent.title,
            agent.programs.join(" "),
            agent.installed.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    output::table(&table)?;
    Ok(0)
}
