//! Tables for people: aligned by hand, and nothing in them moves the cursor.

/// Rows of text under a heading.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&word| word.to_owned()).collect()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        let plain = |cell: &str| cell.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        self.rows.push(cells.map(|cell| if plain(&cell) { cell } else { clean(&cell) }).into());
    }

    /// The table as text. `width` cuts lines to a terminal.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide: Vec<usize> = (0..columns)
            .map(|at| self.rows.iter().filter_map(|row| row.get(at)).map(|cell| width_of(cell)).max())
            .map(Option::unwrap_or_default)
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                line.push_str(cell);
                if at + 1 < row.len() {
                    let gap = wide[at] - width_of(cell) + 2;
                    line.extend(std::iter::repeat_n(' ', gap));
                }
            }
            let line = line.trim_end();
            match width.filter(|width| line.chars().count() > *width && *width > 1) {
                Some(width) => text.extend(line.chars().take(width - 1).chain(['…'])),
                None => text.push_str(line),
            }
            text.push('\n');
        }
        text
    }
}

/// How many columns a text takes, as far as a count of characters tells.
fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The text with everything taken out that a terminal acts on, or that turns the direction of writing.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                '\u{fffd}'
            }
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// A command as a shell would take it, for reading.
pub(crate) fn command_line(argv: &[wharf_model::Text]) -> String {
    let word = |text: &wharf_model::Text| {
        let text = text.lossy();
        let plain =
            !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_=+./,:@%^".contains(c));
        if plain { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
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

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\u{9b}c\nd\u{202e}e"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}e");
    }

    #[test]
    fn commands_read_as_typed() {
        let argv = ["sh", "-c", "echo 'hi' $X", ""].map(Into::into);
        assert_eq!(command_line(&argv), r"sh -c 'echo '\''hi'\'' $X' ''");
    }
}
