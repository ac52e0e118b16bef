//! `wharf attach`: brings a session to this terminal, and chooses the keys that leave it.

use std::time::Duration;

use wharf_boundary::SessionDir;
use wharf_model::{Act, Code, Failure, Offset};

use crate::attach::{Begin, Options, Outer, attach};
use crate::detach::{DEFAULT, DetachKeys, NESTED};
use crate::dispatch::Serve;
use crate::trouble::{Done, invalid};
use crate::{config, join, output, permission, place};

/// Arguments of `attach`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Look and do not type
    #[arg(short, long)]
    read_only: bool,
    /// The keys that leave it running: ctrl-\, or ctrl-p,ctrl-q, or none; else WHARF_DETACH_KEYS, or detach_keys in
    /// the configuration. Inside of another session, whose keys those are, it is ctrl-]
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
    permission::to(&home, Act::Read, "attach to", &dir, &args.name)?;
    // One that waits for others has a ticket already, and nobody who holds it.
    // The holder of one on another host is no process of this one; its door is here.
    let socket = || SessionDir::open(&dir).is_ok_and(|dir| dir.has_socket());
    let door = || socket() || place::has_exit(&dir);
    let begun = |ticket: &wharf_model::Ticket| ticket.holder.is_some() || door();
    let ticket = place::ticket(&dir)?.filter(begun).ok_or_else(|| {
        Failure::new(Code::NotStarted, format!("the session {:?} does not run yet", args.name))
            .hint(format!("`wharf show {}` says what it waits for", args.name))
    })?;
    if args.print_command {
        if let Some(command) = join::command(&ticket) {
            output::data(&command)?;
            return Ok(0);
        }
        let backend = format!("the {} backend", ticket.backend);
        return Err(Failure::unsupported("a command of its own that attaches", backend)
            .hint(format!("`wharf attach {}` does it", args.name))
            .into());
    }
    let own = permission::own_session(&home);
    if own.as_ref().is_some_and(|own| dir.file_name().is_some_and(|id| id == own.as_str())) {
        // Whatever it shows would be output of the session, and be shown again.
        return Err(invalid(format!(
            "this command runs inside session {:?}, and would show it to itself",
            args.name
        ))
        .hint(format!("`wharf logs {}` prints its output", args.name))
        .into());
    }
    let begin = match args.from {
        Some(offset) => Begin::At(Offset(offset)),
        None if args.no_replay => Begin::Now,
        None => Begin::Tail,
    };
    let (keys, outer) = keys(args.detach_keys, &home)?;
    attach(&Options {
        name: args.name,
        dir,
        tty: ticket.spec.tty,
        isolated: ticket.spec.container.is_some() || ticket.spec.adopt.is_some(),
        read_only: args.read_only,
        geometry: ticket.spec.geometry,
        keys,
        outer,
        begin,
        owned: false,
        patience: Some(Duration::from_secs(2)),
    })
}

/// The detach keys: from the flag, the environment, the configuration, or the default; and the session around this one.
///
/// Inside of another session what is set for all is that one's, and would never come as far as this one.
pub(super) fn keys(
    flag: Option<String>,
    home: &wharf_model::Home,
) -> Result<(DetachKeys, Option<Outer>), Failure> {
    let parse = |keys: &str| DetachKeys::parse(keys).map_err(invalid);
    let default = || DEFAULT.to_owned();
    let own = permission::own_session(home);
    if let (Some(flag), None) = (&flag, &own) {
        return Ok((parse(flag)?, None));
    }
    let set = match std::env::var("WHARF_DETACH_KEYS").ok().filter(|keys| !keys.is_empty()) {
        Some(keys) => keys,
        // Where the keys are given, the file is only asked for what to say.
        None if flag.is_some() => {
            config::load(home).ok().and_then(|config| config.detach_keys).unwrap_or_else(default)
        }
        None => config::load(home)?.detach_keys.unwrap_or_else(default),
    };
    let set = parse(&set)?;
    let Some(own) = own else { return Ok((set, None)) };
    let nested = parse(NESTED)?;
    let keys = match flag {
        Some(flag) => parse(&flag)?,
        None if nested.same_as(&set) => parse(DEFAULT)?,
        None => nested,
    };
    let name = place::ticket(&home.session(&own)).ok().flatten().map(|ticket| ticket.name.to_string());
    Ok((keys, Some(Outer { name: name.unwrap_or_else(|| own.to_string()), keys: set })))
}
