//! What stands in a row's cells.

use alacritty_terminal::grid::Row;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};

/// A character as it is seen: one cell or two.
pub(crate) struct Glyph<'a> {
    pub(crate) cell: &'a Cell,
    /// Half of a wide character whose other half was written over, which shows nothing.
    pub(crate) broken: bool,
    pub(crate) width: usize,
}

impl Glyph<'_> {
    pub(crate) fn push_to(&self, text: &mut String) {
        if self.broken {
            text.push(' ');
            return;
        }
        // The grid remembers where a tab was typed; on the screen it is a space.
        text.push(if self.cell.c == '\t' { ' ' } else { self.cell.c });
        text.extend(self.cell.zerowidth().into_iter().flatten());
    }
}

/// The characters of a row, from the left. The cell that a wide character left free at the end of a row, because it
/// did not fit there, is none.
pub(crate) fn glyphs(row: &Row<Cell>) -> impl Iterator<Item = Glyph<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= row.len() {
            return None;
        }
        let cell = &row[Column(at)];
        let last = at + 1 == row.len();
        if last && is_gap(cell) {
            return None;
        }
        let whole = cell.flags.contains(Flags::WIDE_CHAR)
            && !last
            && row[Column(at + 1)].flags.contains(Flags::WIDE_CHAR_SPACER);
        let width = if whole { 2 } else { 1 };
        let broken = !whole && cell.flags.intersects(Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER);
        at += width;
        Some(Glyph { cell, broken, width })
    })
}

/// Blanks halves of wide characters, and forgets gaps that are no longer at the end of their row. The grid would take
/// them for whole, and clear the cells beside them.
pub(crate) fn heal(row: &mut Row<Cell>) {
    let wide = Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER;
    let odd = wide | Flags::LEADING_WIDE_CHAR_SPACER;
    if !row[..].iter().any(|cell| cell.flags.intersects(odd)) {
        return;
    }
    let last = row.len() - 1;
    let mut at = 0;
    while at <= last {
        let flags = row[Column(at)].flags;
        if flags.contains(Flags::WIDE_CHAR)
            && at < last
            && row[Column(at + 1)].flags.contains(Flags::WIDE_CHAR_SPACER)
        {
            at += 2;
            continue;
        }
        if flags.intersects(wide) {
            let cell = &mut row[Column(at)];
            cell.clear_wide();
            cell.flags.remove(wide);
        }
        if at < last && flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
            row[Column(at)].flags.remove(Flags::LEADING_WIDE_CHAR_SPACER);
        }
        at += 1;
    }
}

/// Blanks a wide character of which only the second half stands behind a column's edge.
pub(crate) fn part(row: &mut Row<Cell>, at: usize) {
    let split = 0 < at && at < row.len() && row[Column(at)].flags.contains(Flags::WIDE_CHAR_SPACER);
    if split {
        for cell in &mut row[Column(at - 1)..Column(at + 1)] {
            cell.clear_wide();
            cell.flags.remove(Flags::WIDE_CHAR_SPACER);
        }
    }
}

/// The character that ends in a column.
pub(crate) fn ending(row: &Row<Cell>, column: usize) -> Option<Glyph<'_>> {
    let mut end = 0;
    glyphs(row)
        .find(|glyph| {
            end += glyph.width;
            end > column
        })
        .filter(|_| end == column + 1)
}

/// Whether the cell was left free by a wide character that did not fit.
pub(crate) fn is_gap(cell: &Cell) -> bool {
    cell.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER)
}

/// Whether the row's text runs on in the next one.
pub(crate) fn wrapped(row: &Row<Cell>) -> bool {
    row.last().is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}

/// The row's text. White space at its end is dropped, unless it runs on.
pub(crate) fn text(row: &Row<Cell>) -> String {
    let mut text = String::with_capacity(row.len());
    for glyph in glyphs(row) {
        glyph.push_to(&mut text);
    }
    if !wrapped(row) {
        text.truncate(text.trim_end_matches(' ').len());
    }
    text
}

/// Whether the row shows nothing, not even a colour.
pub(crate) fn is_blank(row: &Row<Cell>) -> bool {
    row.into_iter().all(|cell| same_look(cell, &Cell::default()))
}

/// Whether two cells look the same, whatever the grid has noted about wraps and tabs.
pub(crate) fn same_look(one: &Cell, other: &Cell) -> bool {
    let look = |cell: &Cell| if cell.c == '\t' { ' ' } else { cell.c };
    let notes = Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER;
    look(one) == look(other)
        && one.fg == other.fg
        && one.bg == other.bg
        && one.flags - notes == other.flags - notes
        && one.extra == other.extra
}
