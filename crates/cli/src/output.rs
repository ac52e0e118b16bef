//! What goes to the terminal, and in which form.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use wharf_model::{Failure, clean, clean_lines, escape_json};

use crate::table::Grid;
use crate::terminal;
use crate::trouble::{Done, Trouble, invalid};

/// Writes bytes as they are: our own painting, and what a session printed where the user asked for just that. Everything
/// else goes through one of the others.
pub(crate) fn raw(bytes: &[u8]) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Trouble::output(&error))
}

/// Writes text for people: nothing in it moves the cursor or asks the terminal.
pub(crate) fn text(text: &str) -> Result<(), Trouble> {
    raw(clean_lines(text).as_bytes())
}

/// Writes data of a session: to a program as it is, to a terminal as text.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Trouble> {
    if io::stdout().is_terminal() { text(&String::from_utf8_lossy(bytes)) } else { raw(bytes) }
}

/// Writes a value as JSON, and a line feed.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Trouble> {
    let mut line = serde_json::to_string(value)
        .map_err(|error| Failure::new(wharf_model::Code::Internal, format!("cannot write JSON: {error}")))?;
    line.push('\n');
    json_text(&line)
}

/// Writes JSON that is one already.
pub(crate) fn json_text(json: &str) -> Result<(), Trouble> {
    raw(escape_json(json).as_bytes())
}

/// Writes a table, cut to the terminal's width where there is one.
pub(crate) fn table(table: &Grid<'_>) -> Result<(), Trouble> {
    let width = io::stdout().is_terminal().then(|| terminal::size(io::stdout())).flatten();
    let shown = table.text(width.map(|size| usize::from(size.cols)));
    match shown.split_once('\n') {
        Some((heading, rows)) if colour(&io::stdout()) => {
            raw(format!("\x1b[1m{}\x1b[0m\n{}", clean(heading), clean_lines(rows)).as_bytes())
        }
        _ => text(&shown),
    }
}

/// Tells the user something that is no data.
pub(crate) fn note(message: impl AsRef<str>) {
    // In one piece: others may write there, too.
    let _ = io::stderr().write_all(format!("{}\n", clean(message.as_ref())).as_bytes());
}

/// The same on a terminal in raw mode, where a line feed alone does not begin a line.
pub(crate) fn note_raw(message: impl AsRef<str>) {
    let _ = write!(io::stderr(), "{}\r\n", clean(message.as_ref()));
}

/// Tells a failure: for people, or for a program as one line of JSON.
pub(crate) fn failure(failure: &Failure, json: bool) {
    let mut err = io::stderr().lock();
    if json && let Ok(line) = serde_json::to_string(failure) {
        let _ = writeln!(err, "{}", escape_json(&line));
        return;
    }
    let name = if colour(&io::stderr()) { "\x1b[1;31mwharf:\x1b[0m" } else { "wharf:" };
    let _ = writeln!(err, "{name} {}", clean(&failure.message));
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "hint: {}", clean(hint));
    }
}

/// What the parser of arguments has to say: help, or what is wrong with them. Words that were typed stand in it.
pub(crate) fn parser(error: &clap::Error) -> Done {
    let rendered = error.render().to_string();
    if let Some(failure) = wrong_arguments(&rendered) {
        return Err(failure.into());
    }
    if error.use_stderr() {
        // It may be closed; then there is nobody to tell.
        let _ = io::stderr().write_all(clean_lines(&rendered).as_bytes());
    } else {
        text(&rendered)?;
    }
    Ok(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// What is wrong with arguments, in the form that all failures have; none where the parser shows help.
fn wrong_arguments(rendered: &str) -> Option<Failure> {
    let mut parts = rendered.strip_prefix("error: ")?.split("\n\n");
    let joined = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = joined(parts.next()?);
    let (mut tips, mut usage) = (Vec::new(), None);
    for part in parts {
        let part = part.trim();
        if part.starts_with("tip: ") {
            tips.extend(part.split("tip: ").map(joined).filter(|tip| !tip.is_empty()));
        } else if let Some(line) = part.strip_prefix("Usage: ") {
            usage = Some(format!("usage: {}", joined(line)));
        }
    }
    let hint = if tips.is_empty() { usage } else { Some(tips.join("; ")) };
    let failure = invalid(message);
    Some(failure.hint(hint.unwrap_or_else(|| "--help says more".to_owned())))
}

fn colour(stream: &impl IsTerminal) -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a command line of this verb.
    fn said(verb: &str, line: &str) -> Failure {
        let command = crate::commands::find(verb).unwrap().command();
        let error = command.try_get_matches_from(line.split(' ')).unwrap_err();
        wrong_arguments(&error.render().to_string()).unwrap()
    }

    #[test]
    fn what_is_wrong_with_arguments_is_a_failure_like_others() {
        let misspelt = said("run", "run --naem x -- true");
        assert_eq!(misspelt.message, "unexpected argument '--naem' found");
        assert!(misspelt.hint.unwrap().contains("a similar argument exists: '--name'"));
        let missing = said("exec", "exec");
        assert!(missing.message.starts_with("the following required arguments were not provided: <NAME>"));
        assert!(missing.hint.unwrap().starts_with("usage: wharf exec "));
        let value = said("logs", "logs a --from x");
        assert!(value.message.starts_with("invalid value 'x' for '--from <OFFSET>'"), "{value:?}");
        let choices = said("completions", "completions sometimes");
        assert!(choices.message.contains("[possible values: "), "{choices:?}");
        for failure in [choices, value] {
            assert_eq!(failure.code.exit_code(), 2);
            assert!(!failure.message.contains('\n') && !failure.hint.unwrap().contains('\n'));
        }
    }

    #[test]
    fn help_is_no_failure() {
        let command = crate::commands::find("run").unwrap().command();
        let error = command.try_get_matches_from(["run", "--help"]).unwrap_err();
        assert_eq!(wrong_arguments(&error.render().to_string()), None);
    }
}
