//! Declares a state rule: what it reads, the pattern it expects, and how much it weighs.

use std::ops::Range;

use serde::Deserialize;
use wharf_model::{Source, State};

use crate::look::unframed;
use crate::{Look, Pattern, Region};

/// A rule: what it means when a pattern is seen in a place.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The state that it stands for.
    pub state: State,
    /// What it looks at.
    #[serde(rename = "in")]
    pub seen: Seen,
    /// What it looks for. A rule over the composer may go without.
    #[serde(rename = "match", default)]
    pub pattern: Option<Pattern>,
    /// What must not be found in the same text.
    #[serde(default)]
    pub unless: Option<Pattern>,
    /// Which rows, for a rule over the screen.
    #[serde(default = "near_the_end")]
    pub region: Region,
    /// Whether it holds only while no input box is drawn.
    #[serde(default)]
    pub no_composer: bool,
    /// How much it counts, where the default is not right.
    #[serde(default)]
    pub weight: Option<u32>,
    /// Whether it is switched off: an override takes a rule away with it.
    #[serde(default)]
    pub off: bool,
}

fn near_the_end() -> Region {
    Region::Bottom(12)
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// The terminal's title.
    Title,
    /// OSC 7501.
    Status,
    /// OSC 9;4.
    Progress,
    /// OSC 133.
    Prompt,
    /// Whether the command itself owns the terminal: `true` or `false`.
    Foreground,
    /// The rows of the region.
    Screen,
    /// The text in the composer. Without a pattern: that there is one.
    Composer,
}

impl Seen {
    /// Who says so, as a state's report names it.
    pub fn source(self) -> Source {
        match self {
            Self::Title | Self::Status | Self::Progress | Self::Prompt => Source::Terminal,
            Self::Foreground => Source::Process,
            Self::Screen | Self::Composer => Source::Screen,
        }
    }

    /// What a program says of itself counts more than a title, that more than the process, that more than the screen.
    fn weight(self) -> u32 {
        match self {
            Self::Status => 80,
            Self::Progress | Self::Prompt => 70,
            Self::Title => 60,
            Self::Foreground => 40,
            Self::Screen | Self::Composer => 20,
        }
    }
}

impl Rule {
    /// How much it counts. A question counts more than its place says: to miss one is to answer it.
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or_else(|| self.seen.weight() + if self.state == State::Asking { 55 } else { 0 })
    }

    /// What it sees, where it sees something.
    pub(crate) fn evidence(
        &self,
        look: &Look<'_>,
        composer: Option<(&Range<usize>, &str)>,
    ) -> Option<String> {
        if self.off || (self.no_composer && composer.is_some()) {
            return None;
        }
        let flag;
        let text = match self.seen {
            Seen::Screen => return self.row(look, composer.map(|(rows, _)| rows)),
            Seen::Composer => composer?.1,
            Seen::Title => look.title,
            Seen::Status => look.status?,
            Seen::Progress => look.progress?,
            Seen::Prompt => look.shell_phase?,
            Seen::Foreground => {
                flag = look.foreground?.to_string();
                &flag
            }
        };
        self.fits(text).then(|| match self.seen {
            Seen::Title => format!("the title is {text:?}"),
            Seen::Status => format!("OSC 7501 says {text}"),
            Seen::Progress => format!("OSC 9;4 says {text}"),
            Seen::Prompt => format!("OSC 133 says {text}"),
            Seen::Foreground if text == "true" => "the command itself owns the terminal".to_owned(),
            Seen::Foreground => "the command itself does not wait for input".to_owned(),
            Seen::Screen | Seen::Composer if text.is_empty() => "the input box is empty".to_owned(),
            Seen::Screen | Seen::Composer => format!("the input box has {:?}", shortened(text)),
        })
    }

    fn row(&self, look: &Look<'_>, composer: Option<&Range<usize>>) -> Option<String> {
        let rows = self.region.rows(look, composer);
        rows.rev().find_map(|index| {
            let row = look.rows.get(index)?;
            let row = match self.region {
                Region::BeforeCursor => up_to(row, look.cursor.1),
                _ => row.clone(),
            };
            let inner = unframed(&row);
            let barred =
                self.unless.as_ref().is_some_and(|unless| unless.is_match(&row) || unless.is_match(inner));
            let seen = [row.as_str(), inner].into_iter().find(|text| self.fits(text)).filter(|_| !barred)?;
            Some(format!("row {} is {:?}", index + 1, shortened(seen)))
        })
    }

    fn fits(&self, text: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
            && !self.unless.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }
}

/// What stands left of a column. A row is trimmed, so it may end earlier: spaces stand there.
pub(crate) fn up_to(row: &str, column: usize) -> String {
    let mut text: String = row.chars().take(column).collect();
    let missing = column.saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// A text of evidence is for people: one line, not too long.
pub(crate) fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
