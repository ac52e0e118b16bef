//! Exports a log as an asciicast, the format that `asciinema` and its players read.
//!
//! Version 3 is the current format; version 2 is for players that came before it. They differ in the header and in
//! the times, which are intervals in the one and counted from the start in the other.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use wharf_model::{Offset, Size, clean, escape_json};

use crate::index::Cursor;
use crate::mark::{Mark, Record};
use crate::marks::marks;
use crate::reader::{Chunk, Reader};
use crate::segment::Segment;
use crate::text::Decoder;

/// The version of the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    /// What asciinema before 3.0 reads. It has no exit event.
    V2,
    /// The current one.
    #[default]
    V3,
}

/// What a recording says about itself, beyond what is in the log. All of it is optional.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The version to write.
    pub version: Version,
    /// A title.
    pub title: Option<String>,
    /// The command, as one would type it.
    pub command: Option<String>,
    /// The type of the terminal: the session's `TERM`.
    pub term: Option<String>,
    /// Environment variables worth telling.
    pub env: Vec<(String, String)>,
    /// The exit status, once the session has ended.
    pub exit: Option<i32>,
    /// When it ended, in microseconds since the Unix epoch.
    pub ended: Option<u64>,
}

/// Writes all that is kept of the log in `dir`, up to its present end.
///
/// The text is the log decoded as UTF-8 without regard to chunks; invalid bytes become U+FFFD.
pub fn export(dir: &Path, out: &mut impl Write, about: &About) -> io::Result<()> {
    let (start, end) = Reader::bounds(dir)?;
    let (mut size, mut begin) = (None, None);
    // The last size set before the first byte is the one to begin with.
    for record in marks(dir, start..start + 1)? {
        let record = record?;
        if let Mark::Resize(now) = record.mark {
            size = Some(now);
        }
        begin.get_or_insert(record.micros);
    }
    let size = size.unwrap_or_default();
    write_header(out, about, size, begin)?;

    let mut cast = Cast {
        out,
        version: about.version,
        start,
        size,
        clock: Clock { elapsed: 0, told: 0, now: begin },
        decoder: Decoder::default(),
        text: String::new(),
        index: None,
    };
    let mut reader = Reader::open(dir, start)?;
    let mut buf = vec![0; 64 << 10];
    while reader.position() < end {
        match reader.read(&mut buf)? {
            Chunk::Data { offset, len } => {
                let len = len.min((end - offset) as usize);
                if let Some(segment) = reader.segment() {
                    cast.data(segment, offset, &buf[..len])?;
                }
            }
            Chunk::Gap { .. } => cast.finish_text()?,
            Chunk::End => break,
        }
    }
    cast.finish_index(end)?;
    cast.finish(about)
}

fn write_header(out: &mut impl Write, about: &About, size: Size, begin: Option<u64>) -> io::Result<()> {
    let Size { cols, rows } = size;
    match about.version {
        Version::V2 => write!(out, r#"{{"version":2,"width":{cols},"height":{rows}"#)?,
        Version::V3 => {
            write!(out, r#"{{"version":3,"term":{{"cols":{cols},"rows":{rows}"#)?;
            if let Some(term) = &about.term {
                write!(out, r#","type":{}"#, quoted(term))?;
            }
            write!(out, "}}")?;
        }
    }
    if let Some(begin) = begin {
        write!(out, r#","timestamp":{}"#, begin / 1_000_000)?;
    }
    for (name, value) in [("title", &about.title), ("command", &about.command)] {
        if let Some(value) = value {
            // A player shows them in a terminal, outside the recording.
            write!(out, r#","{name}":{}"#, quoted(&clean(value)))?;
        }
    }
    // Version 2 has no better place for the terminal's type.
    let term = about.term.as_deref().filter(|_| about.version == Version::V2).map(|term| ("TERM", term));
    let env = about.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (n, (name, value)) in term.into_iter().chain(env).enumerate() {
        let before = if n == 0 { r#","env":{"# } else { "," };
        write!(out, "{before}{}:{}", quoted(name), quoted(value))?;
    }
    if term.is_some() || !about.env.is_empty() {
        write!(out, "}}")?;
    }
    writeln!(out, "}}")
}

/// A text as JSON: somebody may look at it in a terminal.
fn quoted(text: &str) -> String {
    escape_json(&serde_json::Value::from(text).to_string()).into_owned()
}

/// A recording being written.
struct Cast<'a, W> {
    out: &'a mut W,
    version: Version,
    start: Offset,
    size: Size,
    clock: Clock,
    decoder: Decoder,
    text: String,
    index: Option<Index>,
}

/// The index of the segment that is being written. A descriptor of our own, because the reader leaves a segment
/// before we are done with its last marks.
struct Index {
    segment: u64,
    file: Option<File>,
    cursor: Cursor,
}

impl Index {
    fn peek(&mut self) -> io::Result<Option<Record>> {
        self.file.as_ref().map_or(Ok(None), |file| self.cursor.peek(file))
    }
}

/// Time since the beginning of the recording, which goes on when the clock is set back.
struct Clock {
    elapsed: u64,
    told: u64,
    now: Option<u64>,
}

impl Clock {
    fn advance(&mut self, micros: u64) {
        // An index that a session has written may have any times, and leap to and fro.
        self.elapsed = self.elapsed.saturating_add(micros.saturating_sub(self.now.unwrap_or(micros)));
        self.now = Some(micros);
    }
}

impl<W: Write> Cast<'_, W> {
    /// Writes a chunk of one segment: its bytes, and the marks among them.
    fn data(&mut self, segment: &Segment, offset: Offset, bytes: &[u8]) -> io::Result<()> {
        if self.index.as_ref().is_none_or(|index| index.segment != segment.first) {
            self.finish_index(offset)?;
            let file = segment.index.as_ref().map(File::try_clone).transpose()?;
            self.index = Some(Index { segment: segment.first, file, cursor: Cursor::new() });
        }
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let Some(record) = self.peek()? else {
                // The writer has not said yet when they came.
                self.clock.advance(segment.modified()?);
                return self.output(rest);
            };
            let before = (record.offset - at).min(rest.len() as u64);
            if before > 0 {
                let (piece, after) = rest.split_at(before as usize);
                // They had come by the time of the record after them.
                self.clock.advance(record.micros);
                self.output(piece)?;
                rest = after;
                at = at + before;
            } else {
                self.apply(record)?;
            }
        }
        Ok(())
    }

    /// Writes the marks after the last bytes of a segment.
    fn finish_index(&mut self, end: Offset) -> io::Result<()> {
        while let Some(record) = self.peek()?.filter(|record| record.offset <= end) {
            self.apply(record)?;
        }
        Ok(())
    }

    fn peek(&mut self) -> io::Result<Option<Record>> {
        self.index.as_mut().map_or(Ok(None), Index::peek)
    }

    /// Writes what a record says, and moves past it.
    fn apply(&mut self, record: Record) -> io::Result<()> {
        if let Some(index) = &mut self.index {
            index.cursor.advance();
        }
        self.clock.advance(record.micros);
        match record.mark {
            // The header has said it.
            Mark::Resize(_) if record.offset <= self.start => Ok(()),
            Mark::Resize(size) if size != self.size => {
                self.size = size;
                self.event("r", &format!("{}x{}", size.cols, size.rows))
            }
            Mark::Restart(run) => self.event("m", &format!("run {run}")),
            Mark::Resize(_) | Mark::Time | Mark::Stream(_) => Ok(()),
        }
    }

    fn output(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        self.decoder.decode(bytes, &mut text);
        if !text.is_empty() {
            self.event("o", &text)?;
        }
        self.text = text;
        Ok(())
    }

    /// Writes what stands for a sequence of bytes that broke off.
    fn finish_text(&mut self) -> io::Result<()> {
        let mut text = String::new();
        self.decoder.finish(&mut text);
        if text.is_empty() { Ok(()) } else { self.event("o", &text) }
    }

    fn event(&mut self, code: &str, text: &str) -> io::Result<()> {
        let micros = match self.version {
            Version::V2 => self.clock.elapsed,
            Version::V3 => self.clock.elapsed - self.clock.told,
        };
        self.clock.told = self.clock.elapsed;
        write!(self.out, r#"[{}.{:06}, "{code}", "#, micros / 1_000_000, micros % 1_000_000)?;
        self.out.write_all(quoted(text).as_bytes())?;
        writeln!(self.out, "]")
    }

    fn finish(mut self, about: &About) -> io::Result<()> {
        self.finish_text()?;
        if let (Version::V3, Some(status)) = (self.version, about.exit) {
            if let Some(ended) = about.ended {
                self.clock.advance(ended);
            }
            self.event("x", &status.to_string())?;
        }
        self.out.flush()
    }
}
