//! `wharf retry`: has an agent begin a failed turn once more.

use std::time::Duration;

use wharf_api::{Await, Retry};

use super::send::failed;
use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{call, duration, output};

/// Arguments of `retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Have the agent make its conversation shorter first
    #[arg(long)]
    compact: bool,
    /// Though nothing shows that the last turn failed
    #[arg(long)]
    force: bool,
    /// How far to wait: submitted, confirmed (proof that the agent took it), idle (its turn is over)
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "confirmed",
          default_missing_value = "confirmed", value_parser = clap::value_parser!(Await))]
    wait: Await,
    /// Give up after this long; what was not typed by then is never typed
    #[arg(long, value_name = "DURATION", default_value = "300", value_parser = duration::parse)]
    timeout: Duration,
    /// Print the receipt as JSON, whatever became of the message
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let request = Retry { compact: args.compact, force: args.force };
    let receipt =
        call::once(async |client| client.retry(&args.name, request, args.wait, args.timeout).await)?;
    let failure = failed(&receipt, args.wait, false);
    if args.json {
        output::json(&receipt)?;
    } else if let Some(failure) = failure {
        return Err(failure.into());
    } else {
        output::note(format!("{}: {}", receipt.status.as_str(), receipt.evidence));
    }
    Ok(failure.map_or(0, |failure| failure.code.exit_code()))
}
