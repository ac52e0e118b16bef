//! Finds an agent's input box on the screen and reads the text that stands in it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::look::unframed;
use crate::{Look, Pattern, Profile, Region};

/// How the input box is found on the screen: by the prompt that it begins with, or by the line that it ends with.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Locator {
    /// What the box's first row begins with; the text follows it.
    pub prompt: Option<Pattern>,
    /// What the row above the box looks like, where that tells the box from a quoted one.
    pub above: Option<Pattern>,
    /// The row that follows the box; there is no box without it. Where none is named, the box is one row.
    pub end: Option<Pattern>,
    /// Whether the lowest such row counts, and not the first.
    pub lowest_end: bool,
    /// What must not stand under the box: it is a past message then.
    pub not_below: Option<Pattern>,
    /// Whether every row of the box begins with the prompt.
    pub every_row: bool,
    /// What the box's rows look like, for one without a prompt: those that stand together above its end.
    pub side: Option<Pattern>,
    /// How many rows at the foot of such a box are not text.
    pub foot: usize,
    /// How many columns the box's further rows are set in by.
    pub indent: usize,
    /// Texts that stand in an empty box.
    pub placeholder: Vec<Pattern>,
    /// Whether the cursor stands where the text goes on: a text that begins at the cursor is then a placeholder.
    pub cursor: bool,
    /// What stands for a text that is not shown, or not whole.
    pub collapsed: Option<Pattern>,
    /// Where the box can be.
    pub region: Region,
}

/// What stands in the input box.
///
/// The agent wraps long lines itself, so line breaks here are not those of the text: compare without white space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Composer {
    /// The text; nothing where only a placeholder stands there.
    pub text: String,
    /// Whether the box is empty.
    pub empty: bool,
    /// Whether a word stands for a pasted text that is not shown.
    pub collapsed: bool,
}

impl Profile {
    /// What stands in the input box, where the profile finds one.
    pub fn composer(&self, look: &Look<'_>) -> Option<Composer> {
        self.locate(look).map(|(_, composer)| composer)
    }

    /// The row at which the input box begins, where the profile finds one.
    pub fn composer_row(&self, look: &Look<'_>) -> Option<usize> {
        self.locate(look).map(|(rows, _)| rows.start)
    }

    /// Where the box stands, and what is in it.
    pub(crate) fn locate(&self, look: &Look<'_>) -> Option<(Range<usize>, Composer)> {
        self.composer.as_ref()?.find(look)
    }
}

impl Locator {
    fn find(&self, look: &Look<'_>) -> Option<(Range<usize>, Composer)> {
        match (&self.prompt, &self.side) {
            (Some(prompt), _) => self.by_prompt(prompt, look),
            (None, Some(side)) => self.by_side(side, look),
            (None, None) => None,
        }
    }

    fn by_prompt(&self, prompt: &Pattern, look: &Look<'_>) -> Option<(Range<usize>, Composer)> {
        self.region.rows(look, None).rev().find_map(|first| {
            let (start, column) = begins(prompt, look.rows.get(first)?)?;
            let above = first.checked_sub(1).map_or("", |above| look.rows[above].as_str());
            if self.above.as_ref().is_some_and(|pattern| !pattern.is_match(above)) {
                return None;
            }
            let end = match &self.end {
                Some(end) => self.end(end, look, first + 1)?,
                None => first + 1,
            };
            let under = look.rows[end.min(look.used())..look.used()].iter();
            if self.not_below.as_ref().is_some_and(|pattern| under.clone().any(|row| pattern.is_match(row))) {
                return None;
            }
            if self.every_row {
                return Some(self.upwards(prompt, look, first, start));
            }
            let further = look.rows[first + 1..end].iter().map(|row| self.inner(row));
            let lines: Vec<String> = std::iter::once(start).chain(further).collect();
            Some((first..end, self.read(&lines, look.cursor == (first, column))))
        })
    }

    /// The rows above that begin with the prompt, too.
    fn upwards(
        &self,
        prompt: &Pattern,
        look: &Look<'_>,
        last: usize,
        text: String,
    ) -> (Range<usize>, Composer) {
        let above = look.rows[..last].iter().rev().map_while(|row| begins(prompt, row).map(|(text, _)| text));
        let mut lines: Vec<String> = std::iter::once(text).chain(above).collect();
        lines.reverse();
        (last + 1 - lines.len()..last + 1, self.read(&lines, false))
    }

    fn by_side(&self, side: &Pattern, look: &Look<'_>) -> Option<(Range<usize>, Composer)> {
        let end = self.end(self.end.as_ref()?, look, 0)?;
        let height = look.rows[..end].iter().rev().take_while(|row| side.is_match(row)).count();
        let (first, last) = (end - height, end.checked_sub(self.foot).filter(|last| *last > end - height)?);
        let rows = first..last;
        let lines: Vec<String> = look.rows[rows.clone()].iter().map(|row| self.inner(row)).collect();
        let blank = lines.iter().take_while(|line| line.is_empty()).count();
        // The text's column is the frame's and what the text is set in by.
        let row = look.rows.get(first + blank).map_or("", String::as_str);
        let text = lines.get(blank).map_or("", String::as_str);
        let column = row.strip_suffix(text).map_or(0, |before| before.chars().count());
        let at_start = look.cursor == (first + blank, column);
        Some((first..end, self.read(lines.get(blank..).unwrap_or_default(), at_start)))
    }

    fn end(&self, pattern: &Pattern, look: &Look<'_>, from: usize) -> Option<usize> {
        let mut rows = (from..look.used()).filter(|index| pattern.is_match(&look.rows[*index]));
        if self.lowest_end || self.prompt.is_none() { rows.next_back() } else { rows.next() }
    }

    fn inner(&self, row: &str) -> String {
        let row = unframed(row);
        let spaces = row.chars().take(self.indent).take_while(|first| *first == ' ').count();
        row[spaces..].to_owned()
    }

    fn read(&self, lines: &[String], at_start: bool) -> Composer {
        let text = lines.join("\n");
        let text = text.trim_end();
        let shown = text.trim();
        let collapsed = self.collapsed.as_ref().is_some_and(|pattern| pattern.is_match(text));
        let empty = shown.is_empty()
            || self.placeholder.iter().any(|pattern| pattern.is_match(shown))
            || (self.cursor && at_start && !collapsed && !shown.contains('\n'));
        let text = if empty { String::new() } else { text.to_owned() };
        Composer { collapsed: collapsed && !empty, empty, text }
    }
}

/// What follows a prompt, and the column where it does.
fn begins(prompt: &Pattern, row: &str) -> Option<(String, usize)> {
    // A row is trimmed: the space after an empty box's prompt is not there.
    let padded = format!("{row} ");
    let inner = format!("{} ", unframed(row));
    let text = prompt.after(&padded).or_else(|| prompt.after(&inner))?;
    let length = text.chars().count();
    Some((text.trim_end().to_owned(), padded.chars().count().saturating_sub(length)))
}
