//! `wharf backends`: lists the backends and whether each can be used now.

use wharf_api::BackendStatus;

use crate::dispatch::Serve;
use crate::table::Table;
use crate::trouble::Done;
use crate::{call, config, output, place};

/// What stands in the place of a backend's name where each session's is chosen as it starts.
const AUTO: &str = "auto";

/// Arguments of `backends`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The default is the one that WHARF_BACKEND or `backend` in the configuration names, or else the instance's own."
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let chosen = config::backend(&place::home()?).unwrap_or_else(|failure| {
        output::note(format!("warning: {failure}"));
        None
    });
    let mut backends = call::again(async |client| client.backends().await)?;
    choose(&mut backends, chosen.as_deref());
    let known = backends.iter().any(|backend| backend.default);
    if args.json {
        output::json(&backends)?;
    } else {
        output::table(&table(backends))?;
    }
    match chosen {
        Some(chosen) if chosen == AUTO => {
            output::note("the default is auto: each session's backend is chosen as it starts");
        }
        Some(chosen) if !known => {
            output::note(format!(
                "warning: the default {chosen:?} is none of them, and no session starts without -b"
            ));
        }
        _ => {}
    }
    Ok(0)
}

/// Marks the default: the daemon knows only its own.
pub(super) fn choose(backends: &mut [BackendStatus], chosen: Option<&str>) {
    let Some(chosen) = chosen else { return };
    for backend in backends {
        backend.default = backend.name == chosen;
    }
}

fn table(backends: Vec<BackendStatus>) -> Table {
    let mut table = Table::new(&["NAME", "DEFAULT", "AVAILABLE", "VERSION", "ISOLATION", "DETAIL"]);
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    for backend in backends {
        let detail = match &backend.hint {
            Some(hint) => format!("{} (hint: {hint})", backend.detail),
            None => backend.detail,
        };
        table.row([
            backend.name,
            yes(backend.default),
            yes(backend.available),
            backend.version.unwrap_or_else(|| "-".to_owned()),
            if backend.capabilities.isolation { "yes" } else { "none" }.to_owned(),
            detail,
        ]);
    }
    table
}
