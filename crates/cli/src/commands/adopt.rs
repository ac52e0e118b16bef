//! `wharf adopt`: takes in a tmux pane or a container that somebody else started.

use wharf_model::{Environment, EnvironmentBase, Group, Name, Spec, Text};

use crate::dispatch::Serve;
use crate::output;
use crate::trouble::{Done, invalid};

/// Variables that say where a place is. No others are kept for what somebody else started.
const PLACES: &[&str] = &[
    "HOME",
    "PATH",
    "TMUX",
    "TMUX_TMPDIR",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "CONTAINER_HOST",
];

/// Arguments of `adopt`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It is watched and typed at, and never ended: `stop` and `kill` let it go, `signal` reaches it."
)]
pub(crate) struct Args {
    /// What to take in: tmux:SESSION[:WINDOW[.PANE]], docker:CONTAINER or podman:CONTAINER
    place: String,
    /// Its name here; one is made up where none is given
    #[arg(long)]
    name: Option<Name>,
    /// The group that it belongs to
    #[arg(long)]
    group: Option<Group>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let (backend, what) =
        args.place.split_once(':').filter(|(_, what)| !what.is_empty()).ok_or_else(|| {
            invalid(format!("{:?} does not say what to take in", args.place))
                .hint("BACKEND:NAME, such as tmux:SESSION:WINDOW.PANE or docker:CONTAINER")
        })?;
    let caller = PLACES.iter().filter_map(|name| Some((Text::from(*name), std::env::var_os(name)?.into())));
    let spec = Spec {
        name: args.name,
        group: args.group,
        backend: Some(backend.to_owned()),
        adopt: Some(what.into()),
        env: Environment {
            base: EnvironmentBase::Caller,
            caller: caller.collect(),
            ..Environment::default()
        },
        ..Spec::new([args.place.as_str()], "/")
    };
    let started = super::run::start(spec, false)?;
    if args.json {
        output::json(&started.session)?;
    } else {
        output::text(&format!("{}\n", started.session.name))?;
    }
    Ok(0)
}
