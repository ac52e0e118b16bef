//! `wharf ls`: lists sessions.

use std::borrow::Cow;
use std::time::Duration;

use wharf_api::rows::{self, Row};
use wharf_api::{Selector, direct};
use wharf_model::{Code, Failure, Session};

use crate::dispatch::Serve;
use crate::duration::{human, now};
use crate::each::each;
use crate::selection::Selection;
use crate::table::Grid;
use crate::trouble::{Done, Trouble};
use crate::{call, output};

/// Arguments of `ls`.
#[derive(Debug, Default, clap::Args)]
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
    pub(crate) json: bool,
}

/// How long a daemon may take to say what it knows by heart.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let selector = args.which.selector()?;
    let (body, code) = listed(selector, if args.json { "brief" } else { "table" }, args.json)?;
    let Some(mut body) = body else { return Ok(code) };
    if args.json && args.running {
        let mut sessions: Vec<wharf_api::Summary> = serde_json::from_slice(&body).map_err(unreadable)?;
        sessions.retain(|session| !session.state.is_over());
        output::json(&sessions)?;
        return Ok(code);
    }
    if args.json {
        // The daemon's answer is the output: nothing is parsed.
        body.push(b'\n');
        output::json_text(&String::from_utf8(body).map_err(unreadable)?)?;
        return Ok(code);
    }
    let mut text = String::from_utf8(body).map_err(unreadable)?;
    if rows::read(&text).is_none() {
        // A daemon of another version.
        let sessions: Vec<Session> = serde_json::from_str(&text).map_err(unreadable)?;
        let lines = sessions.iter().map(rows::line);
        text = std::iter::once(rows::HEADING.to_owned()).chain(lines).collect();
    }
    let shown = rows::read(&text).into_iter().flatten();
    let shown = shown.filter(|row| !(args.running && row.over));
    if args.quiet {
        output::text(&shown.flat_map(|row| [row.name, "\n"]).collect::<String>())?;
    } else {
        let most = text.bytes().filter(|byte| *byte == b'\n').count();
        output::table(&listing(shown, most))?;
    }
    Ok(code)
}

/// The daemon's list, and the code to end with. Of several names, those that there are not are told, and the others listed; there
/// is no list where none is left.
fn listed(mut selector: Selector, form: &str, json: bool) -> Result<(Option<Vec<u8>>, u8), Trouble> {
    match ask(&direct::sessions(&selector, form)) {
        Ok(body) => return Ok((Some(body), 0)),
        Err(failure) if failure.code == Code::Unreachable || selector.names.len() < 2 => {
            return Err(failure.into());
        }
        // Which of them it was, the answer does not say.
        Err(_) => {}
    }
    let mut found = Vec::new();
    let code = each(&selector.names, json, |name| {
        let alone = Selector { names: vec![name.to_owned()], ..Selector::default() };
        ask(&direct::sessions(&alone, form))?;
        found.push(name.to_owned());
        Ok(0)
    })?;
    if found.is_empty() {
        return Ok((None, code));
    }
    selector.names = found;
    Ok((Some(ask(&direct::sessions(&selector, form))?), code))
}

pub(super) fn ask(target: &str) -> Result<Vec<u8>, Failure> {
    match call::directly(target, None, LIST_TIMEOUT) {
        Ok(Some(body)) => Ok(body),
        // Asked again below, of a new one.
        Err(failure) if failure.code != Code::Unreachable => Err(failure),
        Ok(None) | Err(_) => {
            call::again(async |client| client.sessions_at(target).await).map(|bytes| bytes.to_vec())
        }
    }
}

pub(super) fn unreadable(error: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Internal, format!("cannot read the daemon's answer: {error}"))
}

fn listing<'a>(rows: impl Iterator<Item = Row<'a>>, most: usize) -> Grid<'a> {
    let (now, home) = (now(), std::env::var("HOME").unwrap_or_default());
    let mut table = Grid::new(&["NAME", "GROUP", "STATE", "PID", "ATTACHED", "AGE", "DIR", "COMMAND"]);
    table.reserve(most);
    let dash = |text: &'a str| Cow::Borrowed(if text.is_empty() { "-" } else { text });
    for row in rows {
        // What comes as rows is clean already.
        table.clean_row([
            row.name.into(),
            dash(row.group),
            row.state.into(),
            dash(row.pid),
            row.attached.into(),
            human(row.created, now).into(),
            short_dir(row.dir, &home),
            row.command.into(),
        ]);
    }
    table
}

/// The directory with `~` for the user's own.
fn short_dir<'a>(dir: &'a str, home: &str) -> Cow<'a, str> {
    match dir.strip_prefix(home.trim_end_matches('/')) {
        Some("") if !home.is_empty() => "~".into(),
        Some(rest) if !home.is_empty() && rest.starts_with('/') => format!("~{rest}").into(),
        _ => dir.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_directory_is_short() {
        for (dir, home, short) in [
            ("/home/u", "/home/u", "~"),
            ("/home/u/x", "/home/u/", "~/x"),
            ("/home/us", "/home/u", "/home/us"),
            ("/x", "", "/x"),
            ("/x", "/", "~/x"),
        ] {
            assert_eq!(short_dir(dir, home), short);
        }
    }

    #[test]
    fn a_row_is_a_line_of_the_table() {
        let text = format!("{}a\t\texited 3\tyes\t\t0\t1\t/x\tsh\n", rows::HEADING);
        let table = listing(rows::read(&text).unwrap(), 1).text(None);
        let line = table.lines().nth(1).unwrap();
        assert!(line.starts_with("a     -      exited 3  -    0         "), "{line}");
        assert!(line.ends_with("  /x   sh"), "{line}");
    }
}
