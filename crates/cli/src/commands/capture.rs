//! `wharf capture`: prints a session's screen as text, colours, HTML or JSON.

use std::fmt::Write as _;
use std::time::Duration;

use wharf_api::{Format, ScreenChanges, What};

use crate::dispatch::Serve;
use crate::trouble::{Done, Trouble};
use crate::{call, output};

/// Arguments of `capture`.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// The last lines, those that have scrolled away included
    #[arg(short = 'n', long, value_name = "LINES", conflicts_with = "all")]
    lines: Option<usize>,
    /// All lines, those that have scrolled away included
    #[arg(long, visible_alias = "scrollback")]
    all: bool,
    /// With colours, as sequences
    #[arg(long, conflicts_with_all = ["html", "json"])]
    ansi: bool,
    /// As a page
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Only the rows that changed since this cursor; `start` gives all of them, and the first cursor
    #[arg(long, value_name = "CURSOR", conflicts_with_all = ["lines", "all", "ansi", "html"])]
    since: Option<String>,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    if let Some(since) = &args.since {
        let since = Some(since.as_str()).filter(|since| !matches!(*since, "" | "start"));
        let ask =
            async |client: wharf_api::Client| client.screen_changes(&args.name, since, Duration::ZERO).await;
        return changed(&call::again(ask)?, args.json).map(|()| 0);
    }
    let what = match (args.all, args.lines) {
        (true, _) => What::All,
        (_, Some(lines)) => What::Last(lines),
        _ => What::Screen,
    };
    let format = match (args.ansi, args.html, args.json) {
        (true, ..) => Format::Ansi,
        (_, true, _) => Format::Html,
        (.., true) => Format::Json,
        _ => Format::Plain,
    };
    let mut text = call::again(async |client| client.capture(&args.name, what, format).await)?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match format {
        Format::Ansi => output::raw(text.as_bytes())?,
        Format::Json => output::json_text(&text)?,
        _ => output::data(text.as_bytes())?,
    }
    Ok(0)
}

/// Rows that changed: what scrolled away as it was, then each row with its number, from 1 at the top.
pub(super) fn changed(changes: &ScreenChanges, json: bool) -> Result<(), Trouble> {
    if json {
        return output::json(changes);
    }
    let mut page = String::new();
    for line in &changes.scrolled {
        let _ = writeln!(page, "   ^ {line}");
    }
    for row in &changes.rows {
        let _ = writeln!(page, "{:>4} {}", row.row + 1, row.text);
    }
    output::data(page.as_bytes())?;
    output::note(format!("cursor {}", changes.cursor));
    Ok(())
}
