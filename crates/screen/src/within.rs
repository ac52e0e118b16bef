//! What text, controls and control sequences do while there are margins at the sides.

use alacritty_terminal::term::TermMode;
use unicode_width::UnicodeWidthChar;
use wharf_sequences::Csi;

use crate::area::Area;
use crate::reading::Reading;

impl Reading<'_> {
    pub(crate) fn print_within(&mut self, c: char) {
        match c.width() {
            Some(width @ 1..) => {
                self.terminal.notes.last = Some(c);
                self.terminal.put(c, width);
            }
            _ => self.print(c),
        }
    }

    /// Does a control that stops or turns at the margins; whether it was one.
    pub(crate) fn control_within(&mut self, byte: u8) -> bool {
        let terminal = &mut *self.terminal;
        match byte {
            0x08 => terminal.back_within(),
            b'\t' => terminal.tab(1),
            b'\n' | 0x0b | 0x0c => {
                terminal.index();
                if terminal.mode(TermMode::LINE_FEED_NEW_LINE) {
                    terminal.slide(terminal.line_start());
                }
            }
            b'\r' => terminal.slide(terminal.line_start()),
            _ => return false,
        }
        true
    }

    /// Does a short escape that moves text between the margins; whether it was one.
    pub(crate) fn escape_within(&mut self, body: &[u8]) -> bool {
        let terminal = &mut *self.terminal;
        match body {
            b"D" => terminal.index(),
            b"M" => terminal.reverse_index(),
            b"E" => {
                terminal.index();
                terminal.slide(terminal.line_start());
            }
            _ => return false,
        }
        true
    }

    /// Does a control sequence that means something else between margins; whether it was one.
    pub(crate) fn sequence_within(&mut self, csi: &Csi<'_>) -> bool {
        if csi.marker != 0 || !csi.intermediates.is_empty() {
            return false;
        }
        let terminal = &mut *self.terminal;
        let count = usize::from(csi.count());
        let (top, left) = (terminal.bounds().0, terminal.side_bounds().0);
        let point = terminal.cursor();
        let (line, column) = (point.line.0 as usize, point.column.0);
        match csi.action {
            b'C' => terminal.slide((column + count).min(terminal.limit() - 1)),
            b'D' => {
                let most = terminal.columns() * terminal.rows();
                for _ in 0..count.min(most) {
                    terminal.back_within();
                }
            }
            b'E' | b'F' => {
                let count = csi.count().into();
                terminal.climb(if csi.action == b'E' { count } else { -count });
                terminal.slide(terminal.line_start());
            }
            b'H' | b'f' => terminal.place(count - 1, usize::from(csi.number(1).max(1)) - 1),
            b'G' | b'`' => terminal.place(line.saturating_sub(top), count - 1),
            b'd' => terminal.place(count - 1, column.saturating_sub(left)),
            b'a' => terminal.place(line.saturating_sub(top), column.saturating_sub(left) + count),
            b'I' => terminal.tab(count),
            b'L' if terminal.inside() => terminal.roll_down(line, count),
            b'M' if terminal.inside() => terminal.roll_up(line, count),
            b'S' => terminal.roll_up(terminal.notes.margins.0, count),
            b'T' => terminal.roll_down(terminal.notes.margins.0, count),
            b'@' | b'P' if terminal.between() => {
                let area = Area { rows: line..line + 1, columns: column..terminal.sides().1 };
                let inserts = csi.action == b'@';
                terminal.rearrange(
                    |grid| {
                        if inserts { area.push(grid, count) } else { area.pull(grid, count) }
                    },
                );
            }
            b'L' | b'M' | b'@' | b'P' => {}
            b'K' | b'J' => {
                terminal.forget_turns(csi.action == b'J', csi.number(0));
                // At a margin the grid takes a cursor that waits for one behind the last column.
                if column + 1 < terminal.columns() {
                    terminal.slide(column);
                }
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Inserts or deletes columns between the margins, from the cursor's on (DECIC, DECDC).
    pub(crate) fn columns(&mut self, csi: &Csi<'_>) {
        let terminal = &mut *self.terminal;
        if terminal.inside() {
            let region = terminal.region();
            let area = Area { columns: terminal.cursor().column.0..region.columns.end, ..region };
            let count = csi.count().into();
            let inserts = csi.action == b'}';
            terminal.rearrange(|grid| if inserts { area.push(grid, count) } else { area.pull(grid, count) });
        }
    }
}
