use std::ffi::OsStr;

use wharf_api::Summary;
use wharf_model::Text;

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::selection::Selection;
use crate::table::{Table, command_line};
use crate::trouble::Done;
use crate::{call, output};

/// Arguments of `ls`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Selection,
    /// Only sessions that are not over
    #[arg(short, long)]
    running: bool,
    /// Only names
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let selector = args.which.selector()?;
    if args.json && !args.running {
        // The daemon's answer is the output: nothing is parsed.
        let mut body = call::again(async |client| client.sessions_raw(&selector).await)?.to_vec();
        body.push(b'\n');
        output::bytes(&body)?;
        return Ok(0);
    }
    let mut sessions = call::again(async |client| client.summaries(&selector).await)?;
    sessions.retain(|session| !(args.running && session.state.is_over()));
    if args.json {
        output::json(&sessions)?;
    } else if args.quiet {
        let names: Vec<&str> = sessions.iter().flat_map(|session| [session.name.as_str(), "\n"]).collect();
        output::text(&names.concat())?;
    } else {
        output::table(&listing(&sessions))?;
    }
    Ok(0)
}

fn listing(sessions: &[Summary]) -> Table {
    let (now, home) = (now(), std::env::var_os("HOME").unwrap_or_default());
    let mut table = Table::new(&["NAME", "GROUP", "STATE", "PID", "ATTACHED", "AGE", "DIR", "COMMAND"]);
    for session in sessions {
        let state = match &session.exit {
            Some(exit) if session.state.is_over() => match (exit.code, exit.signal) {
                (Some(code), _) => format!("{} {code}", session.state.as_str()),
                (None, Some(signal)) => format!("{} signal {signal}", session.state.as_str()),
                (None, None) => session.state.as_str().to_owned(),
            },
            _ => session.state.as_str().to_owned(),
        };
        let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.row([
            session.name.to_string(),
            dash(session.group.as_ref().map(ToString::to_string)),
            state,
            dash(session.pid.map(|pid| pid.to_string())),
            session.attached.to_string(),
            human(session.created, now),
            short_dir(&session.dir, &home),
            command_line(&session.argv),
        ]);
    }
    table
}

/// The directory with `~` for the user's own.
fn short_dir(dir: &Text, home: &OsStr) -> String {
    match dir.as_path().strip_prefix(home) {
        Ok(rest) if !home.is_empty() && rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) if !home.is_empty() => format!("~/{}", rest.to_string_lossy()),
        _ => dir.lossy().into_owned(),
    }
}
