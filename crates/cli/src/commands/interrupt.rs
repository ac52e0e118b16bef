//! `wharf interrupt`: stops an agent's turn and says whether it stopped.

use std::time::Duration;

use wharf_model::Interrupted;

use crate::dispatch::Serve;
use crate::each::each;
use crate::trouble::Done;
use crate::typing::{Keyboard, WRITE_TIMEOUT};
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
    each(&args.names, args.json, |name| {
        let ticket = place::ticket(&place::session(&home, name)?)?;
        if ticket.is_some_and(|ticket| !ticket.spec.tty) {
            // Pipes have no keys.
            Keyboard::of(name, WRITE_TIMEOUT)?.signal(libc::SIGINT)?;
            output::note(format!("{name} has no terminal: its processes got INT"));
            return Ok(0);
        }
        let done = call::once(async |client| client.interrupt(name, args.timeout).await)?;
        if args.json {
            output::json(&done)?;
        } else {
            output::note(told(name, &done));
        }
        Ok(0)
    })
}

/// What became of it: also why nothing was to be done.
fn told(name: &str, done: &Interrupted) -> String {
    let (state, evidence) = (done.report.state.as_str(), done.report.evidence.as_str());
    // Of a program that nobody knows nothing is seen, and nothing is said.
    let seen = if evidence.is_empty() { String::new() } else { format!(": {evidence}") };
    match (done.keys.is_empty(), done.reason.as_str()) {
        // A daemon of another version.
        (_, "") => format!("{name} is {state}{seen}"),
        (true, reason) => format!("{name} was not interrupted: {reason}{seen}"),
        (false, reason) => format!("{name} was interrupted: {reason}; it is {state}{seen}"),
    }
}
