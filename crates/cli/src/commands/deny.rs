//! `wharf deny`: refuses what an agent asks.

use std::time::Duration;

use super::approve::told;
use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{call, duration};

/// Arguments of `deny`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// How long the agent may take to take the answer
    #[arg(long, value_name = "DURATION", default_value = "15", value_parser = duration::parse)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let answered = call::once(async |client| client.deny(&args.name, args.timeout).await)?;
    told(&answered, args.json)?;
    Ok(0)
}
