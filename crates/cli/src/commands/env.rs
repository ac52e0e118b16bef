//! `wharf env`: prints or changes a session's variables, and prepares its dev shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wharf_api::EnvRequest;
use wharf_model::{Change, Nix, Spec, Text};

use crate::dispatch::Serve;
use crate::surroundings::SurroundingsArgs;
use crate::table::clean;
use crate::trouble::{Done, invalid};
use crate::{call, output, start, surroundings, variables};

/// Arguments of `env`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The session, by name or id
    #[arg(required = true)]
    name: Option<String>,
    /// Variables to set: NAME=VALUE, or NAME to pass on the value it has here
    #[arg(value_name = "NAME=VALUE")]
    set: Vec<OsString>,
    /// A variable to take away; may be repeated
    #[arg(short = 'u', long, value_name = "NAME")]
    unset: Vec<OsString>,
    /// Print JSON: an array of [name, value]
    #[arg(long)]
    json: bool,
}

/// What else there is to do about environments.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a dev shell ready ahead of the first session in it
    Prepare(Prepare),
}

/// Arguments of `env prepare`.
#[derive(Debug, clap::Args)]
struct Prepare {
    /// The directory that sessions will run in
    #[arg(short = 'w', long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    surroundings: SurroundingsArgs,
    /// Print JSON: an array of what is ready
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    if let Some(What::Prepare(args)) = args.what {
        return prepare(&args);
    }
    let name = args.name.as_deref().unwrap_or_default();
    if !args.set.is_empty() || !args.unset.is_empty() {
        let request = changes(&args)?;
        call::again(async |client| client.set_env(name, &request).await)?;
        output::note(format!(
            "{name}: holds for `wharf exec` and for the next start; the command that runs keeps what it has"
        ));
        return Ok(0);
    }
    let vars = call::again(async |client| client.env(name).await)?;
    if args.json {
        output::json(&vars)?;
        return Ok(0);
    }
    let mut text = Vec::new();
    for (name, value) in &vars {
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    output::data(&text)?;
    Ok(0)
}

fn prepare(args: &Prepare) -> Done {
    let dir = start::absolute(args.dir.as_deref().unwrap_or(Path::new(".")))?;
    let mut spec = Spec::new(["true"], dir.clone());
    spec.env.caller = std::env::vars_os().map(|(name, value)| (name.into(), value.into())).collect();
    spec.nix = args.surroundings.nix(dir.as_path())?;
    spec.sandbox = args.surroundings.sandbox()?;
    if spec.nix.is_none() && spec.sandbox.is_none() {
        spec.nix = Some(Box::new(Nix { flake: dir, ..Nix::default() }));
    }
    let ready = surroundings::prepare(&spec, |step| output::note(step))?;
    if args.json {
        output::json(&ready)?;
    } else {
        output::text(&ready.iter().map(|line| clean(line) + "\n").collect::<String>())?;
    }
    Ok(0)
}

fn changes(args: &Args) -> Result<EnvRequest, wharf_model::Failure> {
    let mut request = EnvRequest::default();
    for text in &args.set {
        match variables::change(text, ":", |name| std::env::var_os(name))? {
            Change::Set(name, value) => request.set.push((name, value)),
            _ => {
                return Err(invalid(format!("{} appends", text.display()))
                    .hint("`wharf env` sets whole values: NAME=VALUE"));
            }
        }
    }
    request.unset = args.unset.iter().map(|name| Text::from(name.as_os_str())).collect();
    Ok(request)
}
