use std::time::{Duration, Instant};

use wharf_api::{Client, daemon};
use wharf_model::{Code, ExitRecord, Failure};

use crate::dispatch::Serve;
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
    /// What to wait for: `exit`
    #[arg(long, value_name = "WHAT", default_value = "exit")]
    until: String,
    /// Print the exit records as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    if args.until != "exit" {
        let failure = Failure::unsupported(format_args!("waiting until {:?}", args.until), "this version");
        return Err(failure.hint("`--until exit` is possible").into());
    }
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let home = place::home()?;
    let exits = call::runtime()?.block_on(async {
        let mut client = daemon::ensure(&home).await?;
        let mut exits = Vec::new();
        for name in &args.names {
            exits.push(end(&home, &mut client, name, deadline).await?);
        }
        Ok::<_, Failure>(exits)
    })?;
    if args.json {
        output::json(&exits)?;
    }
    Ok(exits.iter().map(code).find(|code| *code != 0).unwrap_or(0))
}

/// Waits for one session. A daemon that dies meanwhile is replaced and asked again.
async fn end(
    home: &wharf_model::Home,
    client: &mut Client,
    name: &str,
    deadline: Option<Instant>,
) -> Result<ExitRecord, Failure> {
    loop {
        let asked = Instant::now();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(asked));
        match client.wait(name, left).await {
            Err(failure) if failure.code == Code::Unreachable => {
                // A daemon that fails at once, again and again, is not asked in a storm.
                if asked.elapsed() < Duration::from_millis(100) {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Err(failure);
                }
                *client = daemon::ensure(home).await?;
            }
            answer => return answer,
        }
    }
}

/// The code that a shell would report.
pub(crate) fn code(exit: &ExitRecord) -> u8 {
    u8::try_from(exit.shell_code() & 0xff).unwrap_or(125)
}
