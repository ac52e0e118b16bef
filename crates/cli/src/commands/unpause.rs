//! `wharf unpause`: lets paused sessions run again.

use wharf_api::ManyRequest;

use crate::dispatch::Serve;
use crate::selection::{Selection, apply};
use crate::trouble::Done;

/// Arguments of `unpause`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Selection,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let request = ManyRequest { selector: args.which.chosen()?, ..ManyRequest::default() };
    apply("unpaused", args.json, &request, async |client, request| client.unpause(request).await)
}
