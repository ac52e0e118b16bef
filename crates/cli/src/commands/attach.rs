use std::time::Duration;

use wharf_model::{Code, Failure, Offset};

use crate::attach::{Begin, Options, attach};
use crate::detach::{DEFAULT, DetachKeys};
use crate::dispatch::Serve;
use crate::trouble::{Done, invalid};
use crate::{config, join, output, place};

/// Arguments of `attach`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Look and do not type
    #[arg(short, long)]
    read_only: bool,
    /// The keys that leave it running: ctrl-\, or ctrl-p,ctrl-q, or none; else WHARF_DETACH_KEYS, or detach_keys in
    /// the configuration
    #[arg(long, value_name = "KEYS")]
    detach_keys: Option<String>,
    /// Do not show again what was printed before
    #[arg(long, conflicts_with = "from")]
    no_replay: bool,
    /// Show output from this offset of the log on
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,
    /// Print the backend's own command that attaches, where it has one
    #[arg(long)]
    print_command: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    let dir = place::session(&home, &args.name)?;
    // One that waits for others has a ticket already, and nobody who holds it.
    // The holder of one on another host is no process of this one; its door is here.
    let door = || dir.join(wharf_model::Home::SOCKET).exists() || dir.join(wharf_model::Home::EXIT).exists();
    let begun = |ticket: &wharf_model::Ticket| ticket.holder.is_some() || door();
    let ticket = place::ticket(&dir)?.filter(begun).ok_or_else(|| {
        Failure::new(Code::NotStarted, format!("the session {:?} does not run yet", args.name))
            .hint(format!("`wharf show {}` says what it waits for", args.name))
    })?;
    if args.print_command {
        if let Some(command) = join::command(&ticket) {
            output::bytes(&command)?;
            return Ok(0);
        }
        let backend = format!("the {} backend", ticket.backend);
        return Err(Failure::unsupported("a command of its own that attaches", backend)
            .hint(format!("`wharf attach {}` does it", args.name))
            .into());
    }
    let begin = match args.from {
        Some(offset) => Begin::At(Offset(offset)),
        None if args.no_replay => Begin::Now,
        None => Begin::Tail,
    };
    attach(&Options {
        name: args.name,
        dir,
        tty: ticket.spec.tty,
        read_only: args.read_only,
        geometry: ticket.spec.geometry,
        keys: keys(args.detach_keys, &home)?,
        begin,
        owned: false,
        patience: Some(Duration::from_secs(2)),
    })
}

/// The detach keys: from the flag, the environment, the configuration, or the default.
pub(super) fn keys(flag: Option<String>, home: &wharf_model::Home) -> Result<DetachKeys, Failure> {
    let named = flag.or_else(|| std::env::var("WHARF_DETACH_KEYS").ok().filter(|keys| !keys.is_empty()));
    let named = match named {
        Some(keys) => keys,
        None => config::load(home)?.detach_keys.unwrap_or_else(|| DEFAULT.to_owned()),
    };
    DetachKeys::parse(&named).map_err(invalid)
}
