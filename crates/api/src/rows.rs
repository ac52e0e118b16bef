//! Sessions as rows of text, as a table shows them: what a command prints of a thousand sessions it need not
//! parse.
//!
//! The first line names the columns; each further one is a session. Columns are parted by tabs, and hold neither
//! tabs nor anything else that a terminal acts on.

use std::fmt::Write as _;

pub use wharf_model::clean;
use wharf_model::{Millis, Session, Text};

/// The first line. Whoever finds another one there reads the sessions as JSON.
pub const HEADING: &str = "name\tgroup\tstate\tover\tpid\tattached\tcreated\tdir\tcommand\n";

/// One session. What is absent is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its group.
    pub group: &'a str,
    /// Its state; once it is over, followed by how, and by `paused` or `suspended` while it stands still.
    pub state: &'a str,
    /// Whether it has ended for good.
    pub over: bool,
    /// The command's pid while it runs.
    pub pid: &'a str,
    /// How many terminals are attached.
    pub attached: &'a str,
    /// When it was created.
    pub created: Millis,
    /// The directory that it runs in.
    pub dir: &'a str,
    /// The command as a shell would take it.
    pub command: &'a str,
}

/// A session as a line.
pub fn line(session: &Session) -> String {
    let mut line = String::with_capacity(128);
    let group = session.group.as_ref().map_or("", |group| group.as_str());
    let _ = write!(line, "{}\t{group}\t{}", session.name, session.state.as_str());
    if let Some(exit) = session.exit.as_ref().filter(|_| session.state.is_over()) {
        let _ = match (exit.code, exit.signal) {
            (Some(code), _) => write!(line, " {code}"),
            (None, Some(signal)) => write!(line, " signal {signal}"),
            (None, None) => Ok(()),
        };
    }
    if session.paused {
        line.push_str(", paused");
    }
    if session.suspended {
        line.push_str(", suspended");
    }
    line.push_str(if session.state.is_over() { "\tyes\t" } else { "\t\t" });
    if let Some(pid) = session.pid {
        let _ = write!(line, "{pid}");
    }
    let dir = clean(&session.dir.lossy());
    let _ = writeln!(
        line,
        "\t{}\t{}\t{dir}\t{}",
        session.attached,
        session.created.0,
        clean(&command_line(&session.argv))
    );
    line
}

/// The sessions in a text of rows; none where it is none, or one of another version.
pub fn read(text: &str) -> Option<impl Iterator<Item = Row<'_>> + Clone> {
    let mut rest = text.strip_prefix(HEADING)?;
    Some(std::iter::from_fn(move || {
        let mut next = |end: u8| {
            // Byte by byte: columns are short, and a search that is good at long texts would be most of the work.
            let at = rest.bytes().position(|byte| byte == end)?;
            let column = rest.get(..at)?;
            rest = rest.get(at + 1..)?;
            Some(column)
        };
        Some(Row {
            name: next(b'\t')?,
            group: next(b'\t')?,
            state: next(b'\t')?,
            over: !next(b'\t')?.is_empty(),
            pid: next(b'\t')?,
            attached: next(b'\t')?,
            created: Millis(next(b'\t')?.parse().ok()?),
            dir: next(b'\t')?,
            command: next(b'\n')?,
        })
    }))
}

/// A command as a shell would take it, for reading.
pub fn command_line(argv: &[Text]) -> String {
    let word = |text: &Text| {
        let text = text.lossy();
        let plain =
            !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_=+./,:@%^".contains(c));
        if plain { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_read_as_typed() {
        let argv = ["sh", "-c", "echo 'hi' $X", ""].map(Into::into);
        assert_eq!(command_line(&argv), r"sh -c 'echo '\''hi'\'' $X' ''");
    }

    #[test]
    fn rows_are_read_as_they_were_written_and_nothing_else_is() {
        let text = format!(
            "{HEADING}a\t\texited 3\tyes\t\t0\t12\t/tmp/x y\tsh -c 'a b'\nb\tg\trunning\t\t7\t1\t13\t/\t\n"
        );
        let rows: Vec<Row<'_>> = read(&text).unwrap().collect();
        assert_eq!((rows[0].name, rows[0].group, rows[0].state, rows[0].pid), ("a", "", "exited 3", ""));
        assert_eq!((rows[0].created, rows[0].dir, rows[0].command), (Millis(12), "/tmp/x y", "sh -c 'a b'"));
        assert_eq!((rows[0].over, rows[1].over), (true, false));
        assert_eq!((rows[1].attached, rows[1].command), ("1", ""));
        assert_eq!(rows.len(), 2);
        assert!(read("[]").is_none());
        assert!(read("name\tstate\nx\ty\n").is_none());
    }
}
