//! `wharf ensure`: starts a session unless one of that name is there already.

use crate::dispatch::Serve;
use crate::start::StartArgs;
use crate::trouble::Done;
use crate::{output, place, surroundings};

/// Arguments of `ensure`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print nothing
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    start: StartArgs,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let json = args.start.json;
    let spec = args.start.spec(&place::home()?)?;
    if spec.name.is_none() && spec.group.is_none() {
        let failure = crate::trouble::invalid("neither a name nor a group was given");
        return Err(failure.hint("--name NAME or --group GROUP says which session there shall be").into());
    }
    surroundings::ready(&spec)?;
    let started = super::run::start(spec, true)?;
    if started.created {
        super::run::tell_ignored(started.session.project.as_deref(), &started.session.pins);
    }
    if json {
        output::json(&started)?;
    } else if !args.quiet {
        output::text(&format!("{}\n", started.session.name))?;
        output::note(if started.created { "started" } else { "was there already" });
    }
    Ok(0)
}
