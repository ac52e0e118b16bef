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
            let state = async |client: &Client, left| in_time(client.until(name, until, left).await);
            let met = runtime.block_on(daemon.ask(state))?.ok_or_else(|| {
                late(name, &format!("was not at {until}"), args.timeout)
                    .hint(format!("`wharf explain {name}` says what it is doing"))
            })?;
            if !args.json {
                let state = met.session.state.as_str();
                output::note(format!("{} is {state}: {}", met.session.name, met.evidence));
            }
            all_met.push(met);
            return Ok(0);
        }
        let end = async |client: &Client, left| in_time(client.wait(name, left).await);
        let exit = runtime.block_on(daemon.ask(end))?;
        let exit = exit.ok_or_else(|| late(name, "did not end", args.timeout))?;
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

/// The daemon's answer; none where it says that the time is up. It knows only what was left when it was asked, so the sentence is
/// made here.
fn in_time<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Err(failure) if failure.code == Code::Timeout => Ok(None),
        answer => answer.map(Some),
    }
}

/// What is said when the time is up: in the words of whoever set it.
fn late(name: &str, what: &str, timeout: Option<Duration>) -> Failure {
    let within = timeout.map(|timeout| format!(" within {}", duration::exact(timeout))).unwrap_or_default();
    Failure::new(Code::Timeout, format!("session \"{name}\" {what}{within}"))
}

/// The code that a shell would report.
pub(crate) fn code(exit: &ExitRecord) -> u8 {
    u8::try_from(exit.shell_code() & 0xff).unwrap_or(125)
}
