use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::typing::{Keyboard, WITHIN};

/// Arguments of `escape`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, by name or id
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    for name in &args.names {
        Keyboard::of(name)?.type_in(b"\x1b", WITHIN)?;
    }
    Ok(0)
}
