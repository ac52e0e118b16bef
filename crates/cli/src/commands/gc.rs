//! `wharf gc`: removes what no session needs any more, and says what it kept.

use wharf_api::GcRequest;
use wharf_model::Millis;

use crate::dispatch::Serve;
use crate::duration::{now, parse_millis};
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `gc`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Remove also sessions that ended longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    older_than: Option<Millis>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let ended_before = args.older_than.map(|age| Millis(now().0.saturating_sub(age.0)));
    let request = GcRequest { dry_run: args.dry_run, ended_before };
    let items = call::again(async |client| client.gc(&request).await)?;
    if args.json {
        output::json(&items)?;
    } else if items.is_empty() {
        output::note("nothing to clear up");
    } else {
        let mut table = Table::new(&["WHAT", "THING", "WHY"]);
        for item in items {
            table.row([item.what, item.thing, item.why]);
        }
        output::table(&table)?;
    }
    Ok(0)
}
