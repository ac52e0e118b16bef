//! Selects the screen rows that a rule reads: the bottom, the cursor's row, those above the composer.

use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error};

use crate::Look;

/// Which rows a rule looks at. Text that an agent quotes stands elsewhere than what its program draws.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Region {
    /// Every row.
    #[default]
    Screen,
    /// The last rows that are not blank.
    Bottom(usize),
    /// The cursor's row.
    Cursor,
    /// The cursor's row, what stands up to its column.
    BeforeCursor,
    /// The rows above the composer, this many; none where there is no composer.
    Above(usize),
    /// What stands under the composer.
    Below,
}

impl Region {
    /// The region of these words: `screen`, `bottom:8`, `cursor`, `before-cursor`, `above:6`, `below`.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, count) = match text.split_once(':') {
            Some((word, count)) => (word, Some(count.parse().ok()?)),
            None => (text, None),
        };
        Some(match (word, count) {
            ("screen", None) => Self::Screen,
            ("cursor", None) => Self::Cursor,
            ("before-cursor", None) => Self::BeforeCursor,
            ("below", None) => Self::Below,
            ("bottom", Some(count)) => Self::Bottom(count),
            ("above", Some(count)) => Self::Above(count),
            _ => return None,
        })
    }

    /// The rows of it. `composer` is where the input box stands.
    pub(crate) fn rows(self, look: &Look<'_>, composer: Option<&Range<usize>>) -> Range<usize> {
        let used = look.used();
        match self {
            Self::Screen => 0..used,
            Self::Bottom(count) => used.saturating_sub(count)..used,
            Self::Cursor | Self::BeforeCursor => {
                let row = look.cursor.0.min(look.rows.len());
                row..look.rows.len().min(row + 1)
            }
            Self::Above(count) => composer.map_or(0..0, |box_| box_.start.saturating_sub(count)..box_.start),
            Self::Below => composer.map_or(0..0, |box_| box_.end.min(used)..used),
        }
    }
}

impl<'de> Deserialize<'de> for Region {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            Error::custom(format!(
                "{text:?} is no region: one of screen, bottom:N, cursor, before-cursor, above:N, below"
            ))
        })
    }
}
