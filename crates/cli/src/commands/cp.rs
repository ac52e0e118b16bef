//! `wharf cp`: copies files to and from a session.

use std::ffi::OsString;

use serde_json::json;
use wharf_model::{Code, Failure, Name};

use crate::copy::{Side, from_archive, from_here, to_archive, to_here};
use crate::dispatch::Serve;
use crate::progress::Counter;
use crate::trouble::{Done, invalid};
use crate::{call, output, place};

/// Arguments of `cp`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "One side is NAME:PATH, the other a path of this host; what begins with / or . is always one of this host. GROUP/NAME:PATH \
    is the session's where there is such a session, and a path of this host where there is not; where it could be either it is refused. A PATH that does not begin with / is seen from the session's directory.\n\nA directory that is there gets the copy in it; DIR/. copies only what is in DIR. With - \
    in place of a path, a tar archive goes to standard output, or comes from standard input into a directory.\n\nWhat comes out belongs to you, with its \
    modes; what goes in belongs to whoever the session runs as. Nothing is ever written outside of the destination; devices, pipes and sockets are left out."
)]
pub(crate) struct Args {
    /// What to copy: NAME:PATH, a path, or - for an archive on standard input
    #[arg(value_name = "FROM")]
    from: OsString,
    /// Where to: NAME:PATH, a path, or - for an archive on standard output
    #[arg(value_name = "TO")]
    to: OsString,
    /// Copy what a link at the end of FROM points to, and not the link
    #[arg(short = 'L', long)]
    follow_link: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON: how much was copied
    #[arg(long)]
    json: bool,
}

/// Refuses `GROUP/NAME:PATH` where it may be a path of this host as well: whoever starts a session of that name must not change
/// where a file goes.
fn refuse_ambiguous(side: &Side) -> Result<(), Failure> {
    let Side::Session(name, _) = side else { return Ok(()) };
    match name.split_once('/') {
        Some((group, _)) if std::path::Path::new(group).is_dir() => {
            let message = format!("{name}: may be a session, or a file in the directory {group}");
            Err(Failure::new(Code::Invalid, message)
                .hint(format!("./{name}:… is the file; the id that `wharf show {name}` has is the session")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    let is_session = |name: &Name| place::session(&home, name.as_str()).is_ok();
    let (from, to) = (Side::parse(&args.from, is_session), Side::parse(&args.to, is_session));
    for side in [&from, &to] {
        refuse_ambiguous(side)?;
    }
    let (follow, counter) = (args.follow_link, Counter::default());
    let what = format!("{} to {}", args.from.display(), args.to.display());
    let moved = call::once(async |client| match (&from, &to) {
        (Side::Session(name, from), Side::Here(to)) => {
            let work = to_here(&client, name, from, to, follow, &counter);
            counter.shown(&what, args.quiet, work).await
        }
        (Side::Here(from), Side::Session(name, to)) => {
            let work = from_here(&client, from, name, to, follow, &counter);
            counter.shown(&what, args.quiet, work).await
        }
        (Side::Session(name, from), Side::Archive) => to_archive(&client, name, from, follow).await,
        (Side::Archive, Side::Session(name, to)) => {
            let work = from_archive(&client, name, to, &counter);
            counter.shown(&what, args.quiet, work).await
        }
        (Side::Session(..), Side::Session(..)) => Err(invalid("both sides are sessions")
            .hint("join two copies: wharf cp ONE:PATH - | wharf cp - TWO:DIR")),
        _ => Err(invalid("neither side is a session")
            .hint("one is written NAME:PATH, as `wharf ls` has the names")),
    })?;
    if moved.left_out > 0 {
        output::note(format!("{} devices, pipes or sockets were left out", moved.left_out));
    }
    if args.json && to != Side::Archive {
        let told = json!({ "entries": moved.entries, "bytes": moved.bytes, "left_out": moved.left_out });
        output::json(&told)?;
    }
    Ok(0)
}
