//! A screen as a text to keep: plain, with colours, as a page, or as data.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};
pub use wharf_model::{Format, What};

use crate::row::{line_ranges, line_text};
use crate::style::Style;
use crate::{Screen, ansi, glyph, html, json};

/// Stands between the lines of the primary screen and the alternate one.
pub(crate) const MARKER: &str = "── alternate screen ──";

/// Something to be captured.
pub(crate) enum Piece<'a> {
    /// The rows of one line.
    Line(&'a Grid<Cell>, (i32, i32)),
    /// The alternate screen begins.
    Marker,
}

impl Piece<'_> {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Line(grid, range) => line_text(grid, *range),
            Self::Marker => MARKER.to_owned(),
        }
    }

    /// The pieces of text of one style each.
    pub(crate) fn runs(&self) -> Vec<(Style, String)> {
        match self {
            Self::Line(grid, range) => runs(grid, *range),
            Self::Marker => vec![(Style::default(), MARKER.to_owned())],
        }
    }

    fn is_blank(&self) -> bool {
        match self {
            Self::Line(grid, (from, end)) => {
                (*from..*end).all(|row| glyph::text(&grid[Line(row)]).trim_end_matches(' ').is_empty())
            }
            Self::Marker => false,
        }
    }
}

impl Screen {
    /// The screen as a text.
    pub fn capture(&self, what: What, format: Format) -> String {
        let pieces = self.pieces(what);
        match format {
            Format::Plain => plain(&pieces),
            Format::Ansi => ansi::write(&pieces),
            Format::Html => html::write(&pieces, self.terminal.term.colors()),
            Format::Json => json::write(self, &pieces),
        }
    }

    fn pieces(&self, what: What) -> Vec<Piece<'_>> {
        let grid = self.terminal.grid();
        let rows = self.terminal.rows() as i32;
        let visible = || (0..rows).map(|row| Piece::Line(grid, (row, row + 1)));
        let mut pieces: Vec<Piece<'_>> = match what {
            What::Screen => visible().collect(),
            What::Last(_) | What::All => {
                let primary = self.terminal.primary();
                let ranges = line_ranges(primary, primary.topmost_line().0, rows);
                let mut pieces: Vec<_> =
                    ranges.into_iter().map(|range| Piece::Line(primary, range)).collect();
                if self.terminal.alternate() {
                    trim(&mut pieces);
                    pieces.push(Piece::Marker);
                    pieces.extend(visible());
                }
                pieces
            }
        };
        trim(&mut pieces);
        if let What::Last(count) = what {
            pieces = pieces.split_off(pieces.len().saturating_sub(count));
        }
        pieces
    }
}

fn trim(pieces: &mut Vec<Piece<'_>>) {
    while pieces.last().is_some_and(Piece::is_blank) {
        pieces.pop();
    }
}

fn plain(pieces: &[Piece<'_>]) -> String {
    let mut text = String::new();
    for piece in pieces {
        text.push_str(&piece.text());
        text.push('\n');
    }
    text
}

fn runs(grid: &Grid<Cell>, (from, end): (i32, i32)) -> Vec<(Style, String)> {
    let mut runs: Vec<(Style, String)> = Vec::new();
    for row in from..end {
        for glyph in glyph::glyphs(&grid[Line(row)]) {
            match runs.last_mut() {
                Some((style, text)) if style.fits(glyph.cell) => glyph.push_to(text),
                _ => {
                    let mut text = String::new();
                    glyph.push_to(&mut text);
                    runs.push((Style::of(glyph.cell), text));
                }
            }
        }
    }
    // Blanks at the end matter only where they are seen.
    while let Some((style, text)) = runs.last_mut() {
        if !style.bare() || style.flags.intersects(Flags::INVERSE | Flags::ALL_UNDERLINES | Flags::STRIKEOUT)
        {
            break;
        }
        text.truncate(text.trim_end_matches(' ').len());
        if !text.is_empty() {
            break;
        }
        runs.pop();
    }
    runs
}
