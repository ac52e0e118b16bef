//! `wharf cancel`: withdraws messages that have not been typed yet.

use crate::dispatch::Serve;
use crate::each::each;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Messages, by id
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Print the receipts as JSON, one a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    each(&args.ids, args.json, |id| {
        let receipt = call::once(async |client| client.cancel(id).await)?;
        if args.json {
            output::json(&receipt)?;
        } else {
            output::text(&format!("{} {}\n", receipt.id, receipt.status.as_str()))?;
        }
        Ok(0)
    })
}
