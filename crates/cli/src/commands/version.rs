//! `wharf version`: prints name, version, system and architecture.

use serde::Serialize;

use crate::dispatch::Serve;
use crate::output;
use crate::trouble::Done;

/// Arguments of `version`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct About {
    name: &'static str,
    version: &'static str,
    system: &'static str,
    architecture: &'static str,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let about = About {
        name: "wharf",
        version: env!("CARGO_PKG_VERSION"),
        system: std::env::consts::OS,
        architecture: std::env::consts::ARCH,
    };
    if args.json {
        output::json(&about)?;
    } else {
        output::text(&format!("{} {}\n", about.name, about.version))?;
    }
    Ok(0)
}
