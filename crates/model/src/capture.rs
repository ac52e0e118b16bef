//! Says what is captured of a screen, and in which form.

use std::fmt;

/// Which lines of a screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum What {
    /// The rows that are visible.
    #[default]
    Screen,
    /// The last lines that have text, those that have scrolled away included.
    Last(usize),
    /// All lines, those that have scrolled away included. While the alternate screen is shown: those of the primary
    /// one, a line that says so, and then the alternate one's.
    All,
}

/// In which form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Text.
    #[default]
    Plain,
    /// Text with the sequences that colour it.
    Ansi,
    /// An element of a page. It holds nothing that runs.
    Html,
    /// An object, with the style of every piece of text.
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Ansi => "ansi",
            Self::Html => "html",
            Self::Json => "json",
        })
    }
}
