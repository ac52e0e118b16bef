//! Tables for people: aligned by hand, and nothing in them moves the cursor.

use std::borrow::Cow;

pub(crate) use wharf_api::rows::{clean, command_line};

/// A table whose text is its own.
pub(crate) type Table = Grid<'static>;

/// Rows of text under a heading.
pub(crate) struct Grid<'a> {
    columns: usize,
    /// Row after row, the heading first.
    cells: Vec<Cow<'a, str>>,
}

impl<'a> Grid<'a> {
    pub(crate) fn new(heading: &[&'static str]) -> Self {
        Self { columns: heading.len(), cells: heading.iter().map(|&word| word.into()).collect() }
    }

    /// Makes room for that many rows at once: growing by and by costs as much as the rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.cells.reserve_exact(rows * self.columns);
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        let plain = |cell: &str| cell.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        self.clean_row(cells.map(|cell| if plain(&cell) { cell.into() } else { clean(&cell).into() }));
    }

    /// A row of cells that are clean already.
    pub(crate) fn clean_row<const N: usize>(&mut self, cells: [Cow<'a, str>; N]) {
        debug_assert_eq!(N, self.columns, "a row has as many cells as the heading");
        self.cells.extend(cells);
    }

    /// The table as text. `width` cuts lines to a terminal.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let rows = || self.cells.chunks(self.columns);
        let mut wide = vec![0; self.columns];
        for row in rows() {
            for (widest, cell) in wide.iter_mut().zip(row) {
                *widest = width_of(cell).max(*widest);
            }
        }
        let mut text = String::with_capacity(rows().len() * (wide.iter().sum::<usize>() + 2 * wide.len()));
        for row in rows() {
            let begin = text.len();
            for (at, (cell, wide)) in row.iter().zip(&wide).enumerate() {
                text.push_str(cell);
                if at + 1 < row.len() {
                    pad(&mut text, wide - width_of(cell) + 2);
                }
            }
            text.truncate(begin + text[begin..].trim_end().len());
            if let Some(width) = width.filter(|width| width_of(&text[begin..]) > *width && *width > 1) {
                let cut: String = text[begin..].chars().take(width - 1).chain(['…']).collect();
                text.truncate(begin);
                text.push_str(&cut);
            }
            text.push('\n');
        }
        text
    }
}

/// Adds blanks.
fn pad(text: &mut String, mut blanks: usize) {
    // One by one they would be most of what a long table costs.
    const MANY: &str = "                                                                ";
    while blanks > MANY.len() {
        text.push_str(MANY);
        blanks -= MANY.len();
    }
    text.push_str(&MANY[..blanks]);
}

/// How many columns a text takes, as far as a count of characters tells.
fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_cut() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(["a".into(), "running".into()]);
        table.row(["longer-name".into(), "é".into()]);
        assert_eq!(table.text(None), "NAME         STATE\na            running\nlonger-name  é\n");
        assert_eq!(table.text(Some(14)), "NAME         …\na            …\nlonger-name  é\n");
    }
}
