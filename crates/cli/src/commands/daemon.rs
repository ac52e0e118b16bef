//! `wharf daemon`: shows, starts, stops, restarts or is the daemon.

use wharf_api::{Client, DaemonStatus, daemon};
use wharf_model::{Code, Failure, Home};

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::trouble::{Done, Trouble};
use crate::{call, output, place};

/// Arguments of `daemon`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Say whether a daemon runs; never starts one
    Status(Json),
    /// Start a daemon unless one runs
    Start(Begin),
    /// End the daemon; sessions go on
    Stop,
    /// End the daemon and start one; sessions go on
    Restart(Begin),
    /// Be the daemon, in the foreground
    Run,
}

#[derive(Debug, Clone, Copy, clap::Args)]
struct Json {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::Args)]
struct Begin {
    /// Start it under a hard limit on file sizes or processor time, which every session will be under
    #[arg(long)]
    inherit_limits: bool,
    #[command(flatten)]
    form: Json,
}

/// No daemon runs.
const NO_DAEMON_CODE: u8 = 3;

pub(crate) fn run(args: Args, serve: Serve) -> Done {
    let home = place::home()?;
    match args.what {
        What::Run => Ok(serve(home)),
        What::Status(form) => status(&home, form.json),
        What::Start(begin) => start(&home, begin),
        What::Stop => {
            if !stop(&home)? {
                output::note("no daemon runs");
            }
            Ok(0)
        }
        What::Restart(begin) => {
            stop(&home)?;
            start(&home, begin)
        }
    }
}

fn status(home: &Home, json: bool) -> Done {
    let asked = call::runtime()?.block_on(async { Client::connect(home.socket()).await?.daemon().await });
    match asked {
        Ok(status) => {
            shown(&status, json)?;
            Ok(0)
        }
        Err(failure) if none_runs(&failure) => {
            if json {
                output::text("{\"running\":false}\n")?;
            } else {
                output::note("no daemon runs; the next command that needs one starts it");
            }
            Ok(NO_DAEMON_CODE)
        }
        Err(failure) => Err(failure.into()),
    }
}

fn start(home: &Home, begin: Begin) -> Done {
    let status = call::runtime()?.block_on(async {
        let client = if begin.inherit_limits {
            daemon::ensure_under_limits(home).await?
        } else {
            daemon::ensure(home).await?
        };
        client.daemon().await
    })?;
    shown(&status, begin.form.json)?;
    Ok(0)
}

/// Whether there was one to stop.
fn stop(home: &Home) -> Result<bool, Failure> {
    let stopped =
        call::runtime()?.block_on(async { Client::connect(home.socket()).await?.stop_daemon().await });
    match stopped {
        Ok(()) => Ok(true),
        Err(failure) if none_runs(&failure) => Ok(false),
        Err(failure) => Err(failure),
    }
}

fn none_runs(failure: &Failure) -> bool {
    matches!(failure.code, Code::Unreachable | Code::Unavailable | Code::NotFound)
}

fn shown(status: &DaemonStatus, json: bool) -> Result<(), Trouble> {
    if json {
        let mut value = serde_json::to_value(status)
            .map_err(|error| Failure::new(Code::Internal, format!("cannot write JSON: {error}")))?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("running".to_owned(), true.into());
        }
        return output::json(&value);
    }
    output::text(&format!(
        "pid      {}\nsocket   {}\nversion  {}\nup       {}\nlive     {} sessions\n",
        status.pid,
        status.socket.lossy(),
        status.version,
        human(status.started, now()),
        status.live,
    ))
}
