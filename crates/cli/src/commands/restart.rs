use wharf_api::ManyRequest;
use wharf_model::Millis;

use crate::dispatch::Serve;
use crate::duration;
use crate::selection::{Selection, apply};
use crate::trouble::Done;

/// Arguments of `restart`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Selection,
    /// How long TERM may take before KILL where it still runs
    #[arg(short = 't', long = "timeout", visible_alias = "grace", value_name = "SECONDS", value_parser = duration::parse_millis)]
    grace: Option<Millis>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let request = ManyRequest { selector: args.which.chosen()?, grace: args.grace, ..ManyRequest::default() };
    apply("restarted", args.json, &request, async |client, request| client.restart(request).await)
}
