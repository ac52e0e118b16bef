//! `wharf logs`: prints a session's output from its log files, and follows it.

use std::io;
use std::path::Path;
use std::time::Duration;

use wharf_holder_client::client::Client;
use wharf_log::{Chunk, Follower, Reader, Stream, Streams, lines_back};
use wharf_model::{Act, Code, Failure, Home, Offset};

use crate::dispatch::Serve;
use crate::duration::{now, parse_moment};
use crate::last_lines::LastLines;
use crate::log_text::{Form, Text};
use crate::trouble::{Done, Trouble, invalid};
use crate::{output, permission, place};

/// Arguments of `logs`.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Go on until the session ends
    #[arg(short, long)]
    follow: bool,
    /// Begin at this offset
    #[arg(long, value_name = "OFFSET", conflicts_with_all = ["since", "lines"])]
    from: Option<u64>,
    /// Begin with what came since: 5m (ago), or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "lines")]
    since: Option<String>,
    /// Begin with the last lines
    #[arg(short = 'n', long, value_name = "LINES")]
    lines: Option<usize>,
    /// Leave out escape sequences and control characters
    #[arg(long, conflicts_with = "raw")]
    plain: bool,
    /// The bytes as they are, also to a terminal; a terminal else gets them without questions to it
    #[arg(long)]
    raw: bool,
    /// Only standard output of a session without a terminal
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only standard error of a session without a terminal
    #[arg(long)]
    stderr: bool,
    /// Begin each line with the time at which it came
    #[arg(long)]
    timestamps: bool,
}

/// How long a follower waits before it looks whether the session still has a holder.
const HOLDER_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is looked whether a session that waits for others has a log by now.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let home = place::home()?;
    let session = place::session(&home, &args.name)?;
    permission::to(&home, Act::Read, "read the output of", &session, &args.name)?;
    let log = session.join(Home::LOG);
    let cannot =
        |error: io::Error| Failure::system(format_args!("cannot read the log of {:?}", args.name), &error);
    if !is_there(&log) {
        begun(&session, &args.name, args.follow)?;
    }
    // Before the first read, so that no change is missed between it and the first wait.
    let follower = args.follow.then(|| Follower::new(&log)).transpose().map_err(cannot)?;
    let from = begin(&args, &log)?;
    let mut reader = Reader::open(&log, from).map_err(cannot)?;
    let only = match (args.stdout, args.stderr) {
        (true, _) => Some(Stream::Stdout),
        (_, true) => Some(Stream::Stderr),
        _ => None,
    };
    let form = Form::new(args.plain, args.raw, args.timestamps);
    let mut text = Text::new(&log, form);
    let mut streams = Streams::new();
    let mut buffer = vec![0; 128 << 10];
    // A return alone makes a line of plain text where the log has none: those are counted, and not the log's.
    let mut last = args.lines.filter(|_| args.plain).map(LastLines::new);
    let mut ends_open = false;
    let mut until_end = Following { follower, session: &session, name: &args.name, silent: 0 };
    loop {
        let over = until_end.over()?;
        loop {
            match reader.read(&mut buffer).map_err(cannot)? {
                Chunk::Data { offset, len } => match only {
                    None => text.show(offset, &buffer[..len]).map_err(cannot)?,
                    Some(only) => {
                        for (stream, range) in streams.split(&reader, offset, len).map_err(cannot)? {
                            if stream == only {
                                text.show(offset + range.start as u64, &buffer[range]).map_err(cannot)?;
                            }
                        }
                    }
                },
                Chunk::Gap { from, to } => {
                    output::note(format!("wharf: {} bytes are gone here, from {from} to {to}", to - from));
                    continue;
                }
                Chunk::End => break,
            }
            if let Some(last) = &mut last {
                last.add(text.take());
            } else {
                ends_open = text.take().last().map_or(ends_open, |byte| *byte != b'\n');
                output::raw(text.take())?;
            }
            text.taken();
        }
        if let Some(last) = last.take() {
            let lines = last.take();
            ends_open = lines.last().is_some_and(|byte| *byte != b'\n');
            output::raw(&lines)?;
        }
        if over || !until_end.wait().map_err(cannot)? {
            // Text ends with a line break; the log itself is as it is.
            if args.plain && ends_open {
                output::raw(b"\n")?;
            }
            return Ok(0);
        }
    }
}

/// Whether something has that name: what it is, whoever reads it looks at.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Waits until a session that does not run yet has a log; without `follow` that is a failure, as it is where it never ran.
fn begun(session: &Path, name: &str, follow: bool) -> Result<(), Failure> {
    let log = session.join(Home::LOG);
    let mut told = false;
    while !is_there(&log) {
        if place::exit(session)?.is_some() && !is_there(&log) {
            return Err(Failure::new(
                Code::Ended,
                format!("the session {name:?} never ran, and printed nothing"),
            )
            .hint(format!("`wharf show {name}` says why")));
        }
        if !is_there(session) {
            return Err(Failure::new(
                Code::NotFound,
                format!("the session {name:?} was removed before it ran"),
            ));
        }
        if !follow {
            return Err(Failure::new(Code::NotStarted, format!("the session {name:?} does not run yet"))
                .hint(format!(
                    "`wharf show {name}` says what it waits for, `wharf logs -f {name}` waits with it"
                )));
        }
        if !told {
            output::note(format!("{name} does not run yet; its output follows"));
            told = true;
        }
        std::thread::sleep(LOG_POLL_INTERVAL);
    }
    Ok(())
}

fn begin(args: &Args, log: &Path) -> Result<Offset, Trouble> {
    let cannot =
        |error: io::Error| Failure::system(format_args!("cannot read the log of {:?}", args.name), &error);
    if let Some(lines) = args.lines {
        return Ok(lines_back(log, lines).map_err(cannot)?);
    }
    if let Some(since) = &args.since {
        let moment = parse_moment(since, now()).map_err(invalid)?;
        return Ok(wharf_log::since(log, moment.0.saturating_mul(1_000)).map_err(cannot)?);
    }
    Ok(Offset(args.from.unwrap_or(0)))
}

/// Follows a log until its session is over.
struct Following<'a> {
    follower: Option<Follower>,
    session: &'a Path,
    name: &'a str,
    /// How often in a row there was neither output nor a holder.
    silent: u32,
}

impl Following<'_> {
    /// Whether the session had ended at this moment: then what the log has is all there will be.
    fn over(&mut self) -> Result<bool, Failure> {
        if self.follower.is_none() {
            return Ok(true);
        }
        if !self.session.exists() {
            // Removed, with all that it will ever print.
            return Ok(true);
        }
        if self.silent > 1 {
            let failure = Failure::new(
                Code::Unreachable,
                format!("the session {:?} has no holder any more", self.name),
            );
            return Err(failure.hint(format!("`wharf show {}` says what became of it", self.name)));
        }
        // A live holder has the last word: an exit record may be that of the run before.
        Ok(place::exit(self.session)?.is_some() && Client::connect(self.session, "program").is_err())
    }

    /// Waits for a change; false where nobody follows.
    fn wait(&mut self) -> io::Result<bool> {
        let Some(follower) = &mut self.follower else { return Ok(false) };
        let lives = follower.wait(HOLDER_POLL_INTERVAL)?
            || Client::connect(self.session, "program").is_ok()
            || !self.session.join(Home::TICKET).exists();
        self.silent = if lives { 0 } else { self.silent + 1 };
        Ok(true)
    }
}
