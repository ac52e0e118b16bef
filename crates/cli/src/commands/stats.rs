//! `wharf stats`: prints what sessions use of processor, memory and disk.

use serde::Serialize;
use wharf_model::{Failure, Name, Stats};

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::each::each;
use crate::quantity::human_bytes;
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `stats`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, by name or id; all that run when absent
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What one session uses.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Usage {
    pub(crate) name: Name,
    #[serde(flatten)]
    pub(crate) stats: Stats,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let measured = |names: &[String]| call::again(async |client| measure(&client, names).await);
    let (mut usage, mut code) = (Vec::new(), 0);
    if args.names.is_empty() {
        usage = measured(&[])?;
    } else {
        code = each(&args.names, args.json, |name| {
            for one in measured(&[name.to_owned()])? {
                if usage.iter().all(|other: &Usage| other.name != one.name) {
                    usage.push(one);
                }
            }
            Ok(0)
        })?;
        if usage.is_empty() {
            return Ok(code);
        }
    }
    if args.json {
        output::json(&usage)?;
        return Ok(code);
    }
    let now = now();
    let bytes = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), human_bytes);
    let mut table = Table::new(&[
        "NAME",
        "CPU",
        "MEMORY",
        "PROCESSES",
        "READ",
        "WRITTEN",
        "RECEIVED",
        "SENT",
        "LOG",
        "LAST OUTPUT",
    ]);
    for Usage { name, stats } in usage {
        table.row([
            name.to_string(),
            format!("{:.1}s", stats.cpu.0 as f64 / 1_000.0),
            human_bytes(stats.memory),
            stats.processes.to_string(),
            bytes(stats.io.map(|io| io.read)),
            bytes(stats.io.map(|io| io.written)),
            bytes(stats.network.map(|network| network.received)),
            bytes(stats.network.map(|network| network.sent)),
            human_bytes(stats.log_end - stats.log_start),
            stats.last_output.map_or_else(|| "-".to_owned(), |time| format!("{} ago", human(time, now))),
        ]);
    }
    output::table(&table)?;
    Ok(code)
}

/// Asks for the named sessions, each of which must be there, or for all that run.
pub(crate) async fn measure(client: &wharf_api::Client, names: &[String]) -> Result<Vec<Usage>, Failure> {
    let selector = wharf_api::Selector { names: names.to_vec(), ..Default::default() };
    let sessions = client.sessions(&selector).await?;
    let mut usage = Vec::new();
    for session in sessions {
        if names.is_empty() && session.state.is_over() {
            continue;
        }
        match client.stats(session.name.as_str()).await {
            Ok(stats) => usage.push(Usage { name: session.name, stats }),
            // One that ended meanwhile is no failure of the list.
            Err(_) if names.is_empty() => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(usage)
}
