//! `wharf explain`: shows why a session is in its state, source by source.

use wharf_model::Explanation;

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::table::{Table, clean};
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let explanation = call::again(async |client| client.explain(&args.name).await)?;
    if args.json {
        output::json(&explanation)?;
        return Ok(0);
    }
    output::text(&heading(&explanation))?;
    let now = now();
    let mut table = Table::new(&["SOURCE", "SAYS", "FOR", "RULE", "VERDICT", "EVIDENCE"]);
    for claim in explanation.claims {
        table.row([
            claim.source.as_str().to_owned(),
            claim.state.as_str().to_owned(),
            human(claim.since, now),
            claim.rule,
            claim.verdict,
            claim.evidence,
        ]);
    }
    output::table(&table)?;
    Ok(0)
}

fn heading(explanation: &Explanation) -> String {
    let report = &explanation.report;
    let composer = match explanation.composer.as_deref() {
        None => "not found".to_owned(),
        Some("") => "empty".to_owned(),
        Some(text) => format!("{text:?}"),
    };
    let off = match explanation.switched_off.as_slice() {
        [] => String::new(),
        off => format!("off       {}, which took too long\n", clean(&off.join(", "))),
    };
    format!(
        "state     {} for {} ({})\nevidence  {}\ndecided   {}\nprofile   {}\ncomposer  {}\n{off}\n",
        report.state.as_str(),
        human(report.since, now()),
        report.source.as_str(),
        clean(&report.evidence),
        clean(&explanation.decided),
        clean(&explanation.profile),
        clean(&composer),
    )
}
