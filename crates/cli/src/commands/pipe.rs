//! `wharf pipe`: copies a session's output to a file from now on.

use std::path::PathBuf;

use wharf_api::PipeRequest;
use wharf_model::Failure;

use crate::dispatch::Serve;
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `pipe`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// The file to append output to
    #[arg(required_unless_present = "stop")]
    file: Option<PathBuf>,
    /// Copy no more
    #[arg(long, conflicts_with_all = ["file", "from_start"])]
    stop: bool,
    /// Begin with what the log has already
    #[arg(long)]
    from_start: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let absolute = |file: PathBuf| {
        std::path::absolute(&file)
            .map_err(|error| Failure::system(format_args!("cannot find {}", file.display()), &error))
    };
    let file = args.file.map(absolute).transpose()?;
    let request = PipeRequest { file: file.clone().map(Into::into), from_start: args.from_start };
    call::once(async |client| client.pipe(&args.name, &request).await)?;
    output::note(match file {
        Some(file) => format!("{}: output is copied to {}", args.name, file.display()),
        None => format!("{}: output is copied no more", args.name),
    });
    Ok(0)
}
