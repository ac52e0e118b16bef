use std::time::Duration;

use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::typing::Keyboard;
use crate::{call, duration, output, place};

/// Arguments of `interrupt`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, by name or id
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// How long the agent may take to stop
    #[arg(long, value_name = "DURATION", default_value = "15", value_parser = duration::parse)]
    timeout: Duration,
    /// Print the state after it as JSON, one a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    for name in &args.names {
        let ticket = place::ticket(&place::session(&home, name)?)?;
        if ticket.is_some_and(|ticket| !ticket.spec.tty) {
            // Pipes have no keys.
            Keyboard::of(name)?.signal(libc::SIGINT)?;
            continue;
        }
        let report = call::once(async |client| client.interrupt(name, args.timeout).await)?;
        if args.json {
            output::json(&report)?;
        } else {
            output::note(format!("{name} is {}: {}", report.state.as_str(), report.evidence));
        }
    }
    Ok(0)
}
