//! Tracks which rows of a screen changed since a reader's cursor.

use std::hash::{BuildHasher, Hasher, RandomState};

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;

use crate::glyph;
use crate::row::{line_ranges, line_text};
use crate::terminal::Terminal;

/// What is different on a screen since somebody looked last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// To be given the next time.
    pub cursor: String,
    /// The rows that are different now: their number from the top, and their text.
    pub rows: Vec<(usize, String)>,
    /// The lines that have left the top of the screen meanwhile, the oldest first.
    pub scrolled: Vec<String>,
    /// These are all rows: the cursor was unknown or too old, or the size is another one.
    pub whole: bool,
}

/// Remembers when each visible row was first seen as it is now.
pub(crate) struct Track {
    /// Tells this screen's cursors from those of any other, one of an earlier daemon included.
    epoch: u32,
    hasher: RandomState,
    rows: Vec<(u64, u64)>,
}

impl Track {
    pub(crate) fn new() -> Self {
        let hasher = RandomState::new();
        let epoch = hasher.hash_one("epoch") as u32;
        Self { epoch, hasher, rows: Vec::new() }
    }

    pub(crate) fn since(&mut self, cursor: &str, terminal: &Terminal, generation: u64) -> Changes {
        let grid = terminal.grid();
        let texts: Vec<String> = (0..terminal.rows())
            .map(|row| {
                let text = glyph::text(&grid[Line(row as i32)]);
                text.trim_end_matches(' ').to_owned()
            })
            .collect();
        self.rows.resize(texts.len(), (0, 0));
        for ((seen, hash), text) in self.rows.iter_mut().zip(&texts) {
            let mut hasher = self.hasher.build_hasher();
            hasher.write(text.as_bytes());
            let now = hasher.finish();
            if now != *hash || *seen == 0 {
                (*seen, *hash) = (generation + 1, now);
            }
        }
        let known = self.parse(cursor).filter(|known| {
            known.breaks == terminal.breaks
                && known.generation <= generation
                && known.scrolled <= terminal.scrolled
        });
        let rows = texts.into_iter().zip(&self.rows).enumerate();
        let rows = rows
            .filter(|(_, (_, (seen, _)))| known.as_ref().is_none_or(|known| *seen > known.generation + 1))
            .map(|(row, (text, _))| (row, text))
            .collect();
        let gone = known.as_ref().map_or(0, |known| terminal.scrolled - known.scrolled);
        Changes {
            cursor: format!("{:x}-{generation:x}-{:x}-{:x}", self.epoch, terminal.scrolled, terminal.breaks),
            rows,
            scrolled: scrolled(terminal, gone),
            whole: known.is_none(),
        }
    }

    fn parse(&self, cursor: &str) -> Option<Known> {
        let mut parts = cursor.split('-').map(|part| u64::from_str_radix(part, 16).ok());
        let mut next = || parts.next().flatten();
        let (epoch, generation, scrolled, breaks) = (next()?, next()?, next()?, next()?);
        (epoch == u64::from(self.epoch)).then_some(Known { generation, scrolled, breaks })
    }
}

/// What a cursor says.
struct Known {
    generation: u64,
    scrolled: u64,
    breaks: u64,
}

/// The last rows of the scrollback, as lines.
fn scrolled(terminal: &Terminal, rows: u64) -> Vec<String> {
    let grid = terminal.primary();
    let rows = rows.min(grid.history_size() as u64) as i32;
    line_ranges(grid, -rows, 0).into_iter().map(|range| line_text(grid, range)).collect()
}
