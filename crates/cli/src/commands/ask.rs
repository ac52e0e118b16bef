//! `wharf ask`: sends a message to an agent and prints its answer.

use std::time::Duration;

use crate::delivery::DeliveryArgs;
use crate::dispatch::Serve;
use crate::persistence::Persistent;
use crate::trouble::Done;
use crate::{call, duration, output, place};

/// Arguments of `ask`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    #[command(flatten)]
    delivery: DeliveryArgs,
    /// Give up after this long; a message that was not typed by then is never typed
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    timeout: Duration,
    /// Print the answer, where it comes from and the receipt as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let request = args.delivery.request(&args.name, args.timeout, false)?;
    let home = place::home()?;
    let reply = call::runtime()?.block_on(async {
        let mut daemon = Persistent::new(home, Some(args.timeout));
        // The message has a key: asked again, it is not sent again.
        let ask = async |client: &wharf_api::Client, left: Option<Duration>| {
            client.ask_agent(&args.name, &request, left.unwrap_or_default()).await
        };
        daemon.ask(ask).await
    })?;
    if args.json {
        output::json(&reply)?;
    } else {
        output::data(format!("{}\n", reply.text.trim_end_matches('\n')).as_bytes())?;
    }
    Ok(0)
}
