//! `wharf restart`: ends sessions where they run and starts them again.

use wharf_api::ManyRequest;
use wharf_model::Millis;

use crate::dispatch::Serve;
use crate::duration;
use crate::selection::{Selection, apply};
use crate::trouble::Done;

/// Arguments of `restart`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Selection,
    /// How long TERM may take before KILL where it still runs
    #[arg(short = 't', long = "timeout", visible_alias = "grace", value_name = "SECONDS", value_parser = duration::parse_millis)]
    grace: Option<Millis>,
    /// Accept that mounts, secrets, work trees or sandbox paths are not what they were at the first start
    #[arg(long)]
    repin: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let request = ManyRequest {
        selector: args.which.chosen()?,
        grace: args.grace,
        repin: args.repin,
        ..ManyRequest::default()
    };
    apply("restarted", args.json, &request, async |client, request| {
        let outcomes = client.restart(request).await?;
        for outcome in outcomes.iter().filter(|outcome| outcome.failure.is_none()) {
            if let Ok(session) = client.glance(outcome.name.as_str()).await {
                super::run::tell_ignored(session.project.as_deref(), &session.pins);
            }
        }
        Ok(outcomes)
    })
}
