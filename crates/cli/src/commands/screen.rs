//! `wharf screen`: shows a session's screen, and watches it change.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use wharf_api::{Client, Format, ScreenChanges, What};
use wharf_model::{Code, Failure, Home};

use super::capture::changed;
use crate::dispatch::Serve;
use crate::other_screen::OtherScreen;
use crate::persistence::Persistent;
use crate::table::clean;
use crate::trouble::{Done, Trouble};
use crate::{call, output, place, terminal};

/// Arguments of `screen`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    /// Go on until the session ends: on a terminal the screen is shown as it changes, else the rows that change
    #[arg(short, long)]
    watch: bool,
    /// Print JSON; with --watch one object a change
    #[arg(long)]
    json: bool,
}

/// How long one question for a change takes at most.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn run(args: Args, _: Serve) -> Done {
    if args.watch {
        let (home, runtime) = (place::home()?, call::runtime()?);
        return runtime.block_on(watch(home, &args));
    }
    let format = if args.json { Format::Json } else { Format::Plain };
    let mut text = call::again(async |client| client.capture(&args.name, What::Screen, format).await)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if args.json {
        output::json_text(&text)?;
    } else {
        output::data(text.as_bytes())?;
    }
    Ok(0)
}

/// Shows changes until the session ends or the user leaves.
async fn watch(home: Home, args: &Args) -> Done {
    let cannot = |error: io::Error| Failure::system("cannot listen for signals", &error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut daemon = Persistent::new(home, None);
    let mut view = View::new(args.json)?;
    let mut cursor: Option<String> = None;
    loop {
        let (since, name) = (cursor.as_deref(), &args.name);
        let look = async |client: &Client, _| {
            let changes = client.screen_changes(name, since, CHANGE_TIMEOUT).await?;
            // One that has ended has no more to show; that is asked only where nothing comes.
            let over = changes.is_empty() && client.session(name).await?.state.is_over();
            Ok((changes, over))
        };
        let (changes, over) = tokio::select! {
            looked = daemon.ask(look) => match looked {
                Err(failure) if failure.code == Code::Ended && cursor.is_some() => return Ok(0),
                looked => looked?,
            },
            _ = interrupt.recv() => return Ok(130),
            _ = terminate.recv() => return Ok(143),
        };
        if !changes.is_empty() {
            view.show(&changes)?;
        }
        if over {
            return Ok(0);
        }
        cursor = Some(changes.cursor);
    }
}

/// Where changes are shown.
enum View {
    /// On a terminal: the rows as they are.
    Terminal { rows: Vec<String>, _screen: OtherScreen },
    /// In a pipe: the rows that changed.
    Pipe { json: bool },
}

impl View {
    fn new(json: bool) -> Result<Self, Trouble> {
        if json || !io::stdout().is_terminal() {
            return Ok(Self::Pipe { json });
        }
        Ok(Self::Terminal { rows: Vec::new(), _screen: OtherScreen::enter()? })
    }

    fn show(&mut self, changes: &ScreenChanges) -> Result<(), Trouble> {
        match self {
            Self::Pipe { json } => changed(changes, *json),
            Self::Terminal { rows, .. } => {
                take(rows, changes);
                let size = terminal::size(io::stdout()).unwrap_or_default();
                output::raw(frame(rows, usize::from(size.rows), usize::from(size.cols)).as_bytes())
            }
        }
    }
}

/// Keeps the rows as they are now.
fn take(rows: &mut Vec<String>, changes: &ScreenChanges) {
    if changes.whole {
        rows.clear();
    }
    rows.resize(usize::from(changes.size.rows), String::new());
    for changed in &changes.rows {
        if let Some(row) = rows.get_mut(changed.row) {
            row.clone_from(&changed.text);
        }
    }
}

/// The rows as one painting, cut to the terminal: the last ones, where not all have room.
fn frame(rows: &[String], height: usize, width: usize) -> String {
    let from = rows.len().saturating_sub(height);
    let mut frame = String::from("\x1b[?2026h\x1b[H");
    for (at, row) in rows[from..].iter().enumerate() {
        let shown: String = clean(row).chars().take(width).collect();
        let end = if at + 1 < rows.len() - from { "\r\n" } else { "" };
        let _ = write!(frame, "{shown}\x1b[K{end}");
    }
    frame.push_str("\x1b[J\x1b[?2026l");
    frame
}

#[cfg(test)]
mod tests {
    use wharf_api::ScreenRow;
    use wharf_model::Size;

    use super::*;

    #[test]
    fn rows_are_kept_and_painted() {
        let row = |row, text: &str| ScreenRow { row, text: text.to_owned() };
        let size = Size { cols: 10, rows: 3 };
        let mut rows = Vec::new();
        let whole = ScreenChanges {
            rows: vec![row(0, "one"), row(1, "two")],
            whole: true,
            size,
            ..Default::default()
        };
        take(&mut rows, &whole);
        take(
            &mut rows,
            &ScreenChanges { rows: vec![row(1, "2\x1b!"), row(9, "far")], size, ..Default::default() },
        );
        assert_eq!(rows, ["one", "2\x1b!", ""]);
        assert_eq!(frame(&rows, 2, 2), "\x1b[?2026h\x1b[H2\u{fffd}\x1b[K\r\n\x1b[K\x1b[J\x1b[?2026l");
    }
}
