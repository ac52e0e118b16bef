//! Boxes of cells that a program fills, erases and copies.

use alacritty_terminal::term::cell::Cell;
use unicode_width::UnicodeWidthChar;
use wharf_sequences::Csi;

use crate::area::Area;
use crate::reading::Reading;

impl Reading<'_> {
    /// Fills a box with a character (DECFRA).
    pub(crate) fn fill_rectangle(&mut self, csi: &Csi<'_>) {
        let c = match csi.number(0) {
            0 => Some(' '),
            code @ (32..=126 | 160..=255) => char::from_u32(code.into()),
            _ => None,
        };
        let Some((c, area)) = c.filter(|c| c.width() == Some(1)).zip(self.rectangle(csi, 1)) else { return };
        let cell = Cell { c, ..self.terminal.grid().cursor.template.clone() };
        self.terminal.rearrange(|grid| area.fill(grid, &cell));
    }

    /// Erases a box (DECERA).
    pub(crate) fn erase_rectangle(&mut self, csi: &Csi<'_>) {
        if let Some(area) = self.rectangle(csi, 0) {
            self.terminal.rearrange(|grid| area.erase(grid));
        }
    }

    /// Copies a box to another place (DECCRA). There is one page.
    pub(crate) fn copy_rectangle(&mut self, csi: &Csi<'_>) {
        let Some(area) = self.rectangle(csi, 0) else { return };
        let (rows, columns) = (self.terminal.bounds(), self.terminal.side_bounds());
        let row = rows.0 + usize::from(csi.number(5).max(1)) - 1;
        let column = columns.0 + usize::from(csi.number(6).max(1)) - 1;
        if row < rows.1 && column < columns.1 {
            let to = Area { rows: row..rows.1, columns: column..columns.1 };
            self.terminal.rearrange(|grid| area.copy(grid, &to));
        }
    }

    /// The box that four numbers describe: top, left, bottom, right. In origin mode they count from the margins.
    fn rectangle(&self, csi: &Csi<'_>, first: usize) -> Option<Area> {
        let number = |index| usize::from(csi.number(first + index));
        let range = |from: usize, until: usize, (start, end): (usize, usize)| {
            let until = if until == 0 { end } else { (start + until).min(end) };
            let from = start + from.max(1) - 1;
            (from < until).then_some(from..until)
        };
        let rows = range(number(0), number(2), self.terminal.bounds())?;
        let columns = range(number(1), number(3), self.terminal.side_bounds())?;
        Some(Area { rows, columns })
    }
}
