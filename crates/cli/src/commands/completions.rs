//! `wharf completions`: prints a completion script for a shell.

use clap_complete::Shell;

use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{help, output};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::tree(), "wharf", &mut script);
    output::raw(&script)?;
    Ok(0)
}
