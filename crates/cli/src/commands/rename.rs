//! `wharf rename`: gives a session another name.

use wharf_model::Name;

use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `rename`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Its new name; it stays in its group
    new: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let new: Name = args.new.parse().map_err(wharf_model::Failure::from)?;
    let session = call::once(async |client| client.rename(&args.name, &new).await)?;
    if args.json {
        output::json(&session)?;
    } else {
        output::text(&format!("{}\n", session.name))?;
    }
    Ok(0)
}
