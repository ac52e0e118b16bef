//! What goes to the terminal, and in which form.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use wharf_model::Failure;

use crate::table::{Grid, clean};
use crate::terminal;
use crate::trouble::Trouble;

/// Writes bytes to standard output.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Trouble::output(&error))
}

/// Writes text to standard output.
pub(crate) fn text(text: &str) -> Result<(), Trouble> {
    bytes(text.as_bytes())
}

/// Writes a value as JSON, and a line feed.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Trouble> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| Failure::new(wharf_model::Code::Internal, format!("cannot write JSON: {error}")))?;
    line.push(b'\n');
    bytes(&line)
}

/// Writes a table, cut to the terminal's width where there is one.
pub(crate) fn table(table: &Grid<'_>) -> Result<(), Trouble> {
    let width = io::stdout().is_terminal().then(|| terminal::size(io::stdout())).flatten();
    let shown = table.text(width.map(|size| usize::from(size.cols)));
    match shown.split_once('\n') {
        Some((heading, rows)) if colour(&io::stdout()) => text(&format!("\x1b[1m{heading}\x1b[0m\n{rows}")),
        _ => text(&shown),
    }
}

/// Tells the user something that is no data.
pub(crate) fn note(message: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", clean(message.as_ref()));
}

/// The same on a terminal in raw mode, where a line feed alone does not begin a line.
pub(crate) fn note_raw(message: impl AsRef<str>) {
    let _ = write!(io::stderr(), "{}\r\n", clean(message.as_ref()));
}

/// Tells a failure: for people, or for a program as one line of JSON.
pub(crate) fn failure(failure: &Failure, json: bool) {
    let mut err = io::stderr().lock();
    if json && let Ok(line) = serde_json::to_string(failure) {
        let _ = writeln!(err, "{line}");
        return;
    }
    let name = if colour(&io::stderr()) { "\x1b[1;31mwharf:\x1b[0m" } else { "wharf:" };
    let _ = writeln!(err, "{name} {}", clean(&failure.message));
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "hint: {}", clean(hint));
    }
}

fn colour(stream: &impl IsTerminal) -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !plain
}
