//! Predicts how an agent changes a text that it receives, so that its transcript can be compared.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

/// What an agent itself does to a text that was handed over whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceivedChange {
    /// Accents are composed (NFC).
    Nfc,
    /// A tab becomes four spaces.
    TabsToFourSpaces,
    /// White space at the start goes.
    TrimStart,
    /// White space at the end goes.
    TrimEnd,
    /// Spaces and tabs at the end go; line breaks stay.
    TrimEndSpaces,
    /// White space at both ends goes.
    Trim,
    /// Zero-width spaces and marks of direction go; joiners stay.
    DropInvisible,
    /// Line breaks at the end go.
    TrimEndLines,
    /// A text of so many lines, or of more characters than this, is trimmed at both ends and gets a space behind it.
    Collapsed {
        /// From so many lines on.
        lines: usize,
        /// Or from more characters than this.
        characters: usize,
    },
}

impl ReceivedChange {
    /// The text after it.
    pub fn apply(self, text: &str) -> String {
        match self {
            Self::Nfc => text.nfc().collect(),
            Self::TabsToFourSpaces => text.replace('\t', "    "),
            Self::TrimStart => text.trim_start().to_owned(),
            Self::TrimEnd => text.trim_end().to_owned(),
            Self::TrimEndSpaces => text.trim_end_matches([' ', '\t']).to_owned(),
            Self::Trim => text.trim().to_owned(),
            Self::DropInvisible => text.chars().filter(|c| !is_invisible(*c)).collect(),
            Self::Collapsed { lines, characters } => {
                let inner = text.trim();
                let long = inner.split('\n').count() >= lines || inner.chars().count() > characters;
                if long { format!("{inner} ") } else { text.to_owned() }
            }
            Self::TrimEndLines => text.trim_end_matches('\n').to_owned(),
        }
    }
}

fn is_invisible(c: char) -> bool {
    // Joiners stay: emoji are made with them.
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

impl crate::Profile {
    /// What the agent makes of a text: what its transcript and its model get.
    pub fn as_received(&self, text: &str) -> String {
        self.text.changes.iter().fold(text.to_owned(), |text, change| change.apply(&text))
    }
}
