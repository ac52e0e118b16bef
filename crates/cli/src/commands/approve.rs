//! `wharf approve`: answers yes to an agent's question, or takes a named choice.

use std::fmt::Write as _;
use std::time::Duration;

use wharf_model::Answered;

use crate::dispatch::Serve;
use crate::table::clean;
use crate::trouble::{Done, Trouble};
use crate::{call, duration, output};

/// Arguments of `approve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// The choice, by its number or its words; the plain yes when absent
    choice: Option<String>,
    /// How long the agent may take to take the answer
    #[arg(long, value_name = "DURATION", default_value = "15", value_parser = duration::parse)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let choice = args.choice;
    let answered = call::once(async |client| client.approve(&args.name, choice, args.timeout).await)?;
    told(&answered, args.json)?;
    Ok(0)
}

/// Says what was asked and what was answered.
pub(super) fn told(answered: &Answered, json: bool) -> Result<(), Trouble> {
    if json {
        return output::json(answered);
    }
    let question = &answered.question;
    let mut page = String::new();
    for (what, text) in
        [("asked", &question.title), ("about", &question.detail), ("answered", &answered.choice)]
    {
        for (at, line) in text.lines().enumerate() {
            let _ = writeln!(page, "{:<9} {}", if at == 0 { what } else { "" }, clean(line));
        }
    }
    output::text(&page)?;
    output::note(format!("now {}", answered.report.state.as_str()));
    Ok(())
}
