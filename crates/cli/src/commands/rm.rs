//! `wharf rm`: removes sessions and their logs.

use wharf_api::ManyRequest;

use crate::dispatch::Serve;
use crate::selection::{Selection, apply};
use crate::trouble::Done;

/// Arguments of `rm`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Selection,
    /// End it first where it still runs
    #[arg(short, long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let request = ManyRequest { selector: args.which.chosen()?, force: args.force, ..ManyRequest::default() };
    apply("removed", args.json, &request, async |client, request| client.remove(request).await)
}
