//! Defines the input of every rule: the screen's rows, the cursor, and the terminal's signals.

/// What is seen of a session: its screen and the signals of its terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look<'a> {
    /// The visible rows, from the top, without white space at their ends.
    pub rows: &'a [String],
    /// Where the cursor stands: row and column, both from 0.
    pub cursor: (usize, usize),
    /// The terminal's title.
    pub title: &'a str,
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// The last OSC 9;4, as `STATE` or `STATE;PERCENT`: `0` none, `1;40` forty per cent, `2` error, `3` busy, `4` paused.
    pub progress: Option<&'a str>,
    /// The last OSC 7501 report: `idle`, `working`, `blocked:kind=permission`.
    pub status: Option<&'a str>,
    /// The last OSC 133 mark: `A` prompt, `B` input, `C` runs, `D` or `D;CODE` ended.
    pub shell_phase: Option<&'a str>,
    /// Whether the session's own command is the terminal's foreground process group, where that is known.
    pub foreground: Option<bool>,
}

impl Look<'_> {
    /// How many rows there are down to the last that is not blank.
    pub(crate) fn used(&self) -> usize {
        self.rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1)
    }
}

/// A row without the frame that is drawn around it: `│ text │`.
pub(crate) fn unframed(row: &str) -> &str {
    const FRAME: [char; 7] = ['│', '┃', '▌', '▐', '║', '▏', '▕'];
    let inner = row.trim_end();
    let inner = inner.strip_suffix(|last| FRAME.contains(&last)).unwrap_or(inner);
    let start = inner.trim_start();
    match start.strip_prefix(|first| FRAME.contains(&first)) {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest).trim_end(),
        None => inner.trim_end(),
    }
}
