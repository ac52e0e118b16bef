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
struct Version {
    name: &'static str,
    version: &'static str,
    system: &'static str,
    architecture: &'static str,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let version = Version {
        name: "wharf",
        version: env!("CARGO_PKG_VERSION"),
        system: std::env::consts::OS,
        architecture: std::env::consts::ARCH,
    };
    if args.json {
        output::json(&version)?;
    } else {
        output::text(&format!("{} {}\n", version.name, version.version))?;
    }
    Ok(0)
}
