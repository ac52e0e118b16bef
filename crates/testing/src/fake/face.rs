//! Draws the fake agent on the normal or the alternate screen.

use std::fmt::Write as _;

use super::terminal::Terminal;

/// What stands at the bottom of the screen.
pub(super) struct Scene<'a> {
    /// The line that says that a turn is going on.
    pub(super) status: Option<String>,
    /// The rows of a question; it stands in the composer's place.
    pub(super) question: Option<Vec<String>>,
    /// What the composer shows.
    pub(super) draft: &'a str,
    /// The window's title.
    pub(super) title: String,
}

/// Draws the agent, in the normal screen or in the alternate one.
pub(super) struct Face {
    full_screen: bool,
    silent: bool,
    rows: usize,
    history: Vec<String>,
    title: String,
}

/// The composer never takes more rows than this.
const MAX_COMPOSER_ROWS: usize = 5;

impl Face {
    pub(super) fn new(full_screen: bool, silent: bool) -> Self {
        Self { full_screen, silent, rows: 0, history: Vec::new(), title: String::new() }
    }

    /// Switches on what the agent wants of the terminal.
    pub(super) fn open(&self, paste: bool) {
        let mut out = String::new();
        if self.full_screen && !self.silent {
            out.push_str("\x1b[?1049h");
        }
        if paste {
            out.push_str("\x1b[?2004h");
        }
        Terminal::write(&out);
    }

    /// Switches it off again.
    pub(super) fn close(&self, paste: bool) {
        let mut out = String::new();
        if paste {
            out.push_str("\x1b[?2004l");
        }
        if self.full_screen && !self.silent {
            out.push_str("\x1b[?1049l");
        }
        if !self.silent {
            out.push_str("\r\n");
        }
        Terminal::write(&out);
    }

    /// Draws new lines of the conversation and the bottom of the screen.
    pub(super) fn draw(&mut self, lines: &[String], scene: &Scene<'_>) {
        if self.silent {
            return;
        }
        let (columns, height) = Terminal::size();
        let mut bottom: Vec<String> = scene.status.iter().cloned().collect();
        bottom.push("─".repeat(columns.min(40)));
        match &scene.question {
            Some(rows) => bottom.extend(rows.iter().map(|row| cut(row, columns))),
            None => bottom.extend(composer(scene.draft, columns)),
        }
        let mut out = String::new();
        if self.title != scene.title {
            self.title.clone_from(&scene.title);
            let _ = write!(out, "\x1b]0;{}\x07", scene.title);
        }
        if self.full_screen {
            self.whole(lines, &bottom, columns, height, &mut out);
        } else {
            out.push('\r');
            if self.rows > 1 {
                let _ = write!(out, "\x1b[{}A", self.rows - 1);
            }
            out.push_str("\x1b[J");
            for line in lines {
                out.push_str(line);
                out.push_str("\r\n");
            }
            out.push_str(&bottom.join("\r\n"));
        }
        self.rows = bottom.len();
        Terminal::write(&out);
    }

    /// Text that goes by above the bottom, which is drawn again afterwards.
    pub(super) fn pour(&mut self, text: &str) {
        if self.silent {
            return;
        }
        let up = if self.rows > 1 { format!("\x1b[{}A", self.rows - 1) } else { String::new() };
        Terminal::write(&format!("\r{up}\x1b[J{text}"));
        self.rows = 0;
    }

    fn whole(
        &mut self,
        lines: &[String],
        bottom: &[String],
        columns: usize,
        height: usize,
        out: &mut String,
    ) {
        for line in lines {
            let cells: Vec<char> = line.chars().collect();
            self.history.extend(cells.chunks((columns / 2).max(1)).map(|row| row.iter().collect::<String>()));
        }
        let room = height.saturating_sub(bottom.len());
        self.history.drain(..self.history.len().saturating_sub(room));
        out.push_str("\x1b[H\x1b[2J");
        out.push_str(&self.history.join("\r\n"));
        let _ = write!(out, "\x1b[{};1H", height.saturating_sub(bottom.len()) + 1);
        out.push_str(&bottom.join("\r\n"));
    }
}

/// The last rows of the composer: `> ` and the text, or spaces and the text.
fn composer(draft: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in draft.split('\n') {
        let mut row = String::new();
        let mut width = 2;
        for c in line.chars() {
            // Everything past ASCII counts as wide: a row may be short, and never wraps by itself.
            let cells = if c.is_ascii() { 1 } else { 2 };
            if width + cells >= columns {
                rows.push(std::mem::take(&mut row));
                width = 2;
            }
            row.push(c);
            width += cells;
        }
        rows.push(row);
    }
    let from = rows.len().saturating_sub(MAX_COMPOSER_ROWS);
    let glyph = |at: usize| if at == 0 { "> " } else { "  " };
    rows[from..].iter().enumerate().map(|(at, row)| format!("{}{row}", glyph(at))).collect()
}

fn cut(text: &str, columns: usize) -> String {
    text.chars().take((columns / 2).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_composer_shows_its_last_rows() {
        assert_eq!(composer("", 80), ["> "]);
        assert_eq!(composer("a\nb", 80), ["> a", "  b"]);
        assert_eq!(composer("abcdef", 6), ["> abc", "  def"]);
        let long: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        assert_eq!(composer(&long.join("\n"), 80), ["> 15", "  16", "  17", "  18", "  19"]);
    }
}
