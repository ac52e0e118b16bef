use std::io::{self, IsTerminal};
use std::time::Duration;

use wharf_api::{StartRequest, Started};
use wharf_model::Spec;

use crate::attach::{Begin, Options, attach};
use crate::dispatch::Serve;
use crate::start::StartArgs;
use crate::trouble::Done;
use crate::{call, output, place};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the name and leave it running; the default where there is no terminal
    #[arg(short, long, conflicts_with = "attach")]
    detach: bool,
    /// Attach, also where there is no terminal: input, output and signals are passed on, and the command's code is ours
    #[arg(short, long)]
    attach: bool,
    /// Print nothing
    #[arg(short, long)]
    quiet: bool,
    /// The keys that leave it running while attached
    #[arg(long, value_name = "KEYS")]
    detach_keys: Option<String>,
    #[command(flatten)]
    start: StartArgs,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let attaches = args.attach || (!args.detach && terminal && !args.start.json);
    let (json, tty) = (args.start.json, args.start.terminal());
    // Whatever is wrong with the keys is said before anything is started.
    let keys = attaches.then(|| super::attach::keys(args.detach_keys, &home)).transpose()?;
    let spec = args.start.spec(&home)?;
    let (waits, geometry) = (!spec.after.is_empty(), spec.geometry);
    let started = start(spec, false)?;
    let session = started.session;
    let Some(keys) = keys else {
        if json {
            output::json(&session)?;
        } else if !args.quiet {
            output::text(&format!("{}\n", session.name))?;
        }
        return Ok(0);
    };
    attach(&Options {
        name: session.name.to_string(),
        dir: session.path.as_path().to_owned(),
        tty,
        read_only: false,
        geometry,
        keys,
        begin: Begin::Fresh,
        owned: true,
        patience: (!waits).then_some(Duration::from_secs(5)),
    })
}

/// Asks for a session.
pub(super) fn start(spec: Spec, ensure: bool) -> Result<Started, wharf_model::Failure> {
    let request = StartRequest { spec, ensure };
    // An ensure may be repeated; a start may not, for the first one may have worked.
    if ensure {
        call::again(async |client| client.start(&request).await)
    } else {
        call::once(async |client| client.start(&request).await)
    }
}
