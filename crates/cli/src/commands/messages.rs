//! `wharf messages`: lists a session's messages and their receipts.

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `messages`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Print the receipts as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let receipts = call::again(async |client| client.messages(&args.name).await)?;
    if args.json {
        output::json(&receipts)?;
        return Ok(0);
    }
    let now = now();
    let mut table = Table::new(&["ID", "STATUS", "AGE", "BYTES", "TEXT", "EVIDENCE"]);
    for receipt in receipts {
        table.row([
            receipt.id,
            receipt.status.as_str().to_owned(),
            human(receipt.created, now),
            receipt.length.to_string(),
            receipt.summary,
            receipt.evidence,
        ]);
    }
    output::table(&table)?;
    Ok(0)
}
