use std::time::Duration;

use wharf_api::Client;
use wharf_model::{ExitRecord, Failure, Until};

use crate::dispatch::Serve;
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
    let Some(until) = args.until else {
        let exits = call::runtime()?.block_on(async {
            let mut daemon = Persistent::new(home, args.timeout);
            let mut exits = Vec::new();
            for name in &args.names {
                let end = async |client: &Client, left| client.wait(name, left).await;
                exits.push(daemon.ask(end).await?);
            }
            Ok::<_, Failure>(exits)
        })?;
        if args.json {
            output::json(&exits)?;
        }
        return Ok(exits.iter().map(code).find(|code| *code != 0).unwrap_or(0));
    };
    let met = call::runtime()?.block_on(async {
        let mut daemon = Persistent::new(home, args.timeout);
        let mut met = Vec::new();
        for name in &args.names {
            let state = async |client: &Client, left| client.until(name, &until, left).await;
            met.push(daemon.ask(state).await?);
        }
        Ok::<_, Failure>(met)
    })?;
    if args.json {
        output::json(&met)?;
    } else {
        for met in met {
            output::note(format!("{} is {}: {}", met.session.name, met.session.state.as_str(), met.evidence));
        }
    }
    Ok(0)
}

/// The code that a shell would report.
pub(crate) fn code(exit: &ExitRecord) -> u8 {
    u8::try_from(exit.shell_code() & 0xff).unwrap_or(125)
}
