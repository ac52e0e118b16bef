//! Builds a session's screen from checkpoint and log, feeds it, and tells what changed.

use std::path::Path;
use std::time::Instant;

use wharf_log::{Chunk, Mark, Reader};
use wharf_model::{Home, Offset, Size};
pub use wharf_model::{ScreenChanges, ScreenRow};
use wharf_screen::{Screen, Signal};

use crate::Result;
use crate::observe::seen::ProfileInput;
use crate::observe::signals;
use crate::output::read::log_end;

/// Lines above the screen that are kept while a session is attended; a capture of everything reads the log again.
const SCROLLBACK_LINES: usize = 2_000;
/// Lines of a capture of everything.
const MAX_CAPTURE_LINES: usize = 1_000_000;
/// How much of a log is read again when there is no checkpoint near its end.
const MAX_REPLAY_LEN: u64 = 8 << 20;
const CHUNK_LEN: usize = 64 * 1024;
/// The longest checkpoint of a screen.
const MAX_CHECKPOINT_LEN: u64 = 64 << 20;
/// How many sizes and restarts are gone through for one screen.
const MAX_MARKS: usize = 10_000;
/// How many cells these sizes may have together.
const MAX_RESIZED_CELLS: u64 = 1 << 27;

/// A session's screen, and the place in the log up to which it is right.
pub(crate) struct View {
    pub(crate) screen: Screen,
    pub(crate) offset: Offset,
    /// Pipes have no terminal that turns a line feed into a new line.
    pipes: bool,
    pub(crate) generation: u64,
    pub(crate) still: Instant,
}

/// What a piece of output brought.
#[derive(Default)]
pub(crate) struct FeedResult {
    /// Signals, each with its place in the log.
    pub(crate) signals: Vec<(Offset, Signal)>,
    /// What the terminal would answer.
    pub(crate) replies: Vec<u8>,
    /// Whether something was printed after the last question, or at all where there is none.
    pub(crate) printed: bool,
    /// Whether the alternate screen was left after it.
    pub(crate) left: bool,
}

impl View {
    /// An empty screen before the first byte.
    pub(crate) fn fresh(size: Size, offset: Offset, pipes: bool, scrollback: usize) -> Self {
        let screen = Screen::new(size, scrollback);
        Self { generation: screen.generation(), screen, offset, pipes, still: Instant::now() }
    }

    /// Builds the screen as it was at a place in the log: from the checkpoint, where there is one before it, and the log
    /// after that.
    pub(crate) fn build(dir: &Path, size: Size, pipes: bool, to: Offset) -> Result<Self> {
        let log = dir.join(Home::LOG);
        let end = log_end(&log)?.min(to);
        let checkpoint = read_checkpoint(dir).filter(|(at, _)| *at <= end && end.0 - at.0 <= MAX_REPLAY_LEN);
        let mut view = match checkpoint {
            Some((offset, screen)) => {
                Self { generation: screen.generation(), screen, offset, pipes, still: Instant::now() }
            }
            None => Self::fresh(size, Offset(end.0.saturating_sub(MAX_REPLAY_LEN)), pipes, SCROLLBACK_LINES),
        };
        view.catch_up(&log, end)?;
        Ok(view)
    }

    /// Builds a screen that has all of the log above it.
    pub(crate) fn everything(dir: &Path, size: Size, pipes: bool) -> Result<Self> {
        let log = dir.join(Home::LOG);
        let end = log_end(&log)?;
        let mut view = Self::fresh(size, Offset(0), pipes, MAX_CAPTURE_LINES);
        view.catch_up(&log, end)?;
        Ok(view)
    }

    /// Reads the log up to `end`, with the sizes that the terminal had then.
    fn catch_up(&mut self, log: &Path, end: Offset) -> Result<()> {
        let failed = |error: std::io::Error| {
            wharf_model::Failure::system(format!("cannot read {}", log.display()), &error)
        };
        let (mut marks, mut cells) = (Vec::new(), 0);
        match wharf_log::marks(log, self.offset..end) {
            Ok(found) => {
                for record in found.flatten() {
                    let what = match record.mark {
                        Mark::Resize(size) => Some(size.affordable()),
                        Mark::Restart(_) => None,
                        Mark::Time | Mark::Stream(_) => continue,
                    };
                    // Nobody sees more sizes than that, and whoever writes them need not be a holder: the last one counts.
                    cells += what.map_or(0, |size: Size| u64::from(size.cols) * u64::from(size.rows));
                    if marks.len() >= MAX_MARKS || cells > MAX_RESIZED_CELLS {
                        marks.pop();
                    }
                    marks.push((record.offset, what));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        }
        let mut marks = marks.into_iter().peekable();
        let mut reader = Reader::open(log, self.offset).map_err(failed)?;
        let mut buffer = vec![0; CHUNK_LEN];
        loop {
            match reader.read(&mut buffer).map_err(failed)? {
                Chunk::End => break,
                Chunk::Gap { to, .. } => self.offset = to,
                Chunk::Data { offset, len } => {
                    let len = len.min(usize::try_from(end.0.saturating_sub(offset.0)).unwrap_or(len));
                    let mut done = 0;
                    while let Some((at, what)) = marks.next_if(|(at, _)| at.0 < offset.0 + len as u64) {
                        let place = usize::try_from(at.0.saturating_sub(offset.0)).unwrap_or(0).max(done);
                        self.feed(offset + done as u64, &buffer[done..place]);
                        done = place;
                        match what {
                            Some(size) => self.screen.resize(size),
                            // Another run has another terminal.
                            None if at.0 > 0 => self.restart(),
                            None => {}
                        }
                    }
                    self.feed(offset + done as u64, &buffer[done..len]);
                }
            }
            if self.offset >= end {
                break;
            }
        }
        for (_, size) in marks {
            if let Some(size) = size {
                self.screen.resize(size);
            }
        }
        Ok(())
    }

    /// Takes output in.
    pub(crate) fn feed(&mut self, offset: Offset, bytes: &[u8]) -> FeedResult {
        let heard = if self.pipes { self.screen.feed(&returned(bytes)) } else { self.screen.feed(bytes) };
        self.offset = offset + bytes.len() as u64;
        if self.screen.generation() != self.generation {
            self.generation = self.screen.generation();
            self.still = Instant::now();
        }
        let since = |at: u64| heard.asked.is_none_or(|asked| at > asked);
        let printed = heard.printed.is_some_and(since);
        let leaves = |(at, signal): &(u64, Signal)| matches!(signal, Signal::AltScreen(false)) && since(*at);
        let left = heard.signals.iter().any(leaves);
        let signals = heard.signals.into_iter().map(|(at, signal)| (offset + at, signal)).collect();
        FeedResult { signals, replies: heard.replies, printed, left }
    }

    /// Another run of the command has begun, on a terminal of its own.
    pub(crate) fn restart(&mut self) {
        self.screen = Screen::new(self.screen.size(), SCROLLBACK_LINES);
    }

    pub(crate) fn resize(&mut self, size: Size) {
        if self.screen.size() != size {
            self.screen.resize(size);
            self.still = Instant::now();
            self.generation = self.screen.generation();
        }
    }

    pub(crate) fn profile_input(&self) -> ProfileInput {
        let modes = self.screen.modes();
        ProfileInput {
            rows: self.screen.rows(),
            cursor: (usize::from(modes.cursor.0), usize::from(modes.cursor.1)),
            title: self.screen.title().to_owned(),
            alternate: modes.alternate,
            paste: modes.bracketed_paste,
            progress: signals::progress(self.screen.progress()),
            status: signals::status(self.screen.status()),
            shell_phase: signals::shell_phase(self.screen.shell_phase()),
        }
    }

    /// What changed since a cursor; all of it without one.
    pub(crate) fn since(&mut self, cursor: Option<&str>) -> ScreenChanges {
        let changes = self.screen.since(cursor.unwrap_or_default());
        ScreenChanges {
            cursor: changes.cursor,
            rows: changes.rows.into_iter().map(|(row, text)| ScreenRow { row, text }).collect(),
            scrolled: changes.scrolled,
            whole: changes.whole,
            size: self.screen.size(),
            title: self.screen.title().to_owned(),
        }
    }

    /// Keeps the screen, so that the next look need not read the log from far back.
    pub(crate) fn checkpoint(&self, dir: &Path) {
        let mut bytes = self.offset.0.to_le_bytes().to_vec();
        bytes.extend(self.screen.checkpoint());
        if let Err(failure) = crate::instance::disk::replace(&dir.join(Home::SCREEN), &bytes) {
            tracing::debug!(%failure, "no checkpoint of a screen was kept");
        }
    }
}

fn read_checkpoint(dir: &Path) -> Option<(Offset, Screen)> {
    let bytes = wharf_boundary::Dir::open(dir).ok()?.read(Home::SCREEN, MAX_CHECKPOINT_LEN).ok()?;
    let (offset, rest) = bytes.split_first_chunk::<8>()?;
    Some((Offset(u64::from_le_bytes(*offset)), Screen::restore(rest)?))
}

/// Puts a carriage return before each line feed.
fn returned(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    for byte in bytes {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}
