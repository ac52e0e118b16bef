//! `wharf events`: prints a session's numbered events, and follows them.

use wharf_model::{Code, Event};

use crate::dispatch::Serve;
use crate::duration::rfc3339;
use crate::persistence::Persistent;
use crate::table::clean;
use crate::trouble::{Done, Trouble};
use crate::{call, output, place};

/// Arguments of `events`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Begin after the event of this number
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    after: u64,
    /// Go on until the session ends
    #[arg(short, long)]
    follow: bool,
    /// Only events of this kind; may be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Print JSON, one event a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    call::runtime()?.block_on(async {
        let mut daemon = Persistent::new(home, None);
        let mut after = args.after;
        loop {
            let open =
                async |client: &wharf_api::Client, _| client.events(&args.name, after, args.follow).await;
            let mut events = daemon.ask(open).await?;
            loop {
                match events.next().await {
                    Ok(Some(event)) => {
                        after = event.seq;
                        if args.kind.is_empty() || args.kind.contains(&event.kind) {
                            shown(&event, args.json)?;
                        }
                    }
                    Ok(None) => return Ok(0),
                    // A new daemon goes on after the last one that came.
                    Err(failure) if failure.code == Code::Unreachable => break,
                    Err(failure) => return Err(failure.into()),
                }
            }
        }
    })
}

fn shown(event: &Event, json: bool) -> Result<(), Trouble> {
    if json {
        return output::json(event);
    }
    let data = if event.data.is_null() { String::new() } else { event.data.to_string() };
    let line = format!("{} {} {} {} {data}", event.seq, rfc3339(event.at), event.source, event.kind);
    output::text(&format!("{}\n", clean(line.trim_end())))
}
