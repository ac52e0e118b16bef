//! `wharf stop`: ends sessions with TERM, a grace, then KILL.

use wharf_api::ManyRequest;
use wharf_model::Millis;

use crate::dispatch::Serve;
use crate::duration;
use crate::selection::{Selection, apply};
use crate::trouble::Done;

/// Arguments of `stop`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Selection,
    /// How long TERM may take before KILL (5, 500ms, 1m); the session's own grace, or 5 s, when absent
    #[arg(short = 't', long = "timeout", visible_alias = "grace", value_name = "SECONDS", value_parser = duration::parse_millis)]
    grace: Option<Millis>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let request = ManyRequest { selector: args.which.chosen()?, grace: args.grace, ..ManyRequest::default() };
    apply("stopped", args.json, &request, async |client, request| client.stop(request).await)
}
