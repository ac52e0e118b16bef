//! Describes what has changed on a screen since somebody looked last.

use serde::{Deserialize, Serialize};

use crate::Size;

/// What has changed on a screen since a cursor. Rows, and not a dump: a program that looks often pays little.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenChanges {
    /// Ask with this the next time.
    pub cursor: String,
    /// The rows that are different now.
    #[serde(default)]
    pub rows: Vec<ScreenRow>,
    /// The lines that have scrolled away since, the oldest first.
    #[serde(default)]
    pub scrolled: Vec<String>,
    /// These are all rows: the cursor was none, or too old.
    #[serde(default)]
    pub whole: bool,
    /// The screen's size.
    #[serde(default)]
    pub size: Size,
    /// The window's title.
    #[serde(default)]
    pub title: String,
}

impl ScreenChanges {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.scrolled.is_empty() && !self.whole
    }
}

/// One row of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenRow {
    /// Its number, from 0 at the top.
    pub row: usize,
    /// Its text.
    pub text: String,
}
