//! `wharf escape`: presses Escape in sessions.

use crate::dispatch::Serve;
use crate::each::each;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `escape`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, by name or id
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print the state after it as JSON, one a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    each(&args.names, args.json, |name| {
        let report = call::once(async |client| client.escape(name).await)?;
        if args.json {
            output::json(&report)?;
        }
        Ok(0)
    })
}
