//! A log's bytes in the form in which they are shown.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use wharf_log::marks;
use wharf_model::{Millis, Offset};

use crate::duration::rfc3339;
use crate::plain::Plain;
use crate::replay::Replay;

/// In which form.
pub(crate) struct Form {
    filter: Filter,
    timestamps: bool,
}

enum Filter {
    /// As they are.
    None,
    /// Safe for a terminal.
    Replay(Box<Replay>),
    /// Text alone.
    Plain(Box<Plain>),
}

impl Form {
    /// Decides by what was asked for, and by where it goes.
    pub(crate) fn new(plain: bool, raw: bool, timestamps: bool) -> Self {
        let filter = if plain {
            Filter::Plain(Box::new(Plain::new()))
        } else if !raw && io::stdout().is_terminal() {
            Filter::Replay(Box::new(Replay::new()))
        } else {
            Filter::None
        };
        Self { filter, timestamps }
    }
}

/// Bytes on their way to the reader.
pub(crate) struct Text {
    log: PathBuf,
    form: Form,
    line_starts: bool,
    out: Vec<u8>,
}

impl Text {
    pub(crate) fn new(log: &Path, form: Form) -> Self {
        Self { log: log.to_owned(), form, line_starts: true, out: Vec::new() }
    }

    /// Takes in a piece of the log.
    pub(crate) fn show(&mut self, offset: Offset, bytes: &[u8]) -> io::Result<()> {
        if !self.form.timestamps {
            self.filter(bytes);
            return Ok(());
        }
        let mut times = marks(&self.log, offset..offset + bytes.len() as u64)?.peekable();
        let mut time = 0;
        let mut at = offset;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            while let Some(Ok(record)) =
                times.next_if(|record| record.as_ref().is_ok_and(|r| r.offset <= at || time == 0))
            {
                time = record.micros;
            }
            if self.line_starts {
                // The time is ours and not the session's: no filter touches it.
                self.out.extend_from_slice(format!("{} ", rfc3339(Millis(time / 1_000))).as_bytes());
            }
            self.line_starts = line.ends_with(b"\n");
            self.filter(line);
            at = at + line.len() as u64;
        }
        Ok(())
    }

    fn filter(&mut self, bytes: &[u8]) {
        match &mut self.form.filter {
            Filter::None => self.out.extend_from_slice(bytes),
            Filter::Replay(replay) => replay.old(bytes, &mut self.out),
            Filter::Plain(plain) => plain.feed(bytes, &mut self.out),
        }
    }

    /// What is ready to be shown.
    pub(crate) fn take(&self) -> &[u8] {
        &self.out
    }

    /// It was shown.
    pub(crate) fn taken(&mut self) {
        self.out.clear();
    }
}

#[cfg(test)]
mod tests {
    use wharf_log::{Retention, Writer};

    use super::*;

    #[test]
    fn each_line_begins_with_its_time() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("log");
        Writer::open(&dir, Retention::default()).unwrap().append(b"one\ntwo\npart").unwrap();
        let mut text = Text::new(&dir, Form { filter: Filter::None, timestamps: true });
        text.show(Offset(0), b"one\ntwo\npa").unwrap();
        text.show(Offset(10), b"rt").unwrap();
        let shown = String::from_utf8(text.out).unwrap();
        let year = &rfc3339(crate::duration::now())[..4];
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 3);
        for (line, end) in lines.iter().zip([" one", " two", " part"]) {
            assert!(line.starts_with(year) && line.ends_with(end), "{line}");
        }
    }
}
