//! `wharf signal`: sends a signal to the command of a session, or to its whole tree.

use wharf_api::ManyRequest;

use crate::dispatch::Serve;
use crate::selection::{Filter, apply};
use crate::signals;
use crate::trouble::{Done, invalid};

/// Arguments of `signal`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, then the signal as a name or number: `web TERM`, `--all 15`
    #[arg(value_name = "NAME… SIGNAL", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// To every process of the session, and not to its command alone
    #[arg(long)]
    tree: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let mut names = args.words;
    let word = names.pop().unwrap_or_default();
    let number = signals::number(&word).ok_or_else(|| {
        invalid(format!("{word:?} is no signal")).hint("write `wharf signal NAME TERM`, or a number")
    })?;
    let request = ManyRequest {
        selector: args.filter.chosen(names)?,
        signal: number,
        tree: args.tree,
        ..ManyRequest::default()
    };
    apply("signalled", args.json, &request, async |client, request| client.signal(request).await)
}
