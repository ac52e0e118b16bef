//! `wharf wait`: waits for the end of sessions, or for a state, a line or an event.

use std::time::Duration;

use wharf_api::Client;
use wharf_model::{Code, ExitRecord, Failure, Until};

use crate::dispatch::Serve;
use crate::each::each;
use crate::persistence::Persistent;
use crate::trouble::Done;
use crate::{call, duration, output, place};

/// Arguments of `wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, by name or id; all of them are waited for
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Give up after this long, with exit code 124
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// What to wait for, and exit with 0 once it is so: starting, running, idle, working, asking, exit, match=REGEX
    /// (a line on the screen), event=KIND. Without it the end is waited for, and the exit code is the command's
    #[arg(long, value_name = "WHAT")]
    until: Option<Until>,
    /// Print JSON: the exit records, or with --until the sessions and what was seen
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    // One deadline for all of them. One that fails stops none of the others.
    let mut daemon = Persistent::new(home, args.timeout);
    let runtime = call::runtime()?;
    let (mut exits, mut all_met) = (Vec::new(), Vec::new());
    let code = each(&args.names, args.json, |name| {
        if let Some(until) = &args.until {
            let state = async |client: &Client, left| client.until(name, until, left).await;
            let asked = runtime.block_on(daemon.ask(state));
            let met = asked.map_err(|failure| late(failure, &format!("was not at {until}"), args.timeout))?;
            if !args.json {
                let state = met.session.state.as_str();
                output::note(format!("{} is {state}: {}", met.session.name, met.evidence));
            }
            all_met.push(met);
            return Ok(0);
        }
        let end = async |client: &Client, left| client.wait(name, left).await;
        let asked = runtime.block_on(daemon.ask(end));
        let exit = asked.map_err(|failure| late(failure, "did not end", args.timeout))?;
        let code = code(&exit);
        exits.push(exit);
        Ok(code)
    })?;
    if args.json && args.until.is_some() {
        output::json(&all_met)?;
    } else if args.json {
        output::json(&exits)?;
    }
    Ok(code)
}

/// A timeout in the words of whoever set it: the daemon knows only what of it was left when it was asked.
fn late(failure: Failure, what: &str, timeout: Option<Duration>) -> Failure {
    match (failure.code, timeout) {
        (Code::Timeout, Some(timeout)) if failure.message.contains(what) => {
            let who = failure.message.split(what).next().unwrap_or_default().trim_end().to_owned();
            Failure { message: format!("{who} {what} within {}", duration::exact(timeout)), ..failure }
        }
        _ => failure,
    }
}

/// The code that a shell would report.
pub(crate) fn code(exit: &ExitRecord) -> u8 {
    u8::try_from(exit.shell_code() & 0xff).unwrap_or(125)
}
