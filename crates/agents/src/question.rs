//! Recognises an agent's question on the screen, with its choices and the keys that take them.

use serde::{Deserialize, Serialize};
use wharf_model::{Choice, ChoiceKind};

use crate::look::unframed;
use crate::rule::up_to;
use crate::{Look, Pattern, Profile, Region};

/// How a question of an agent is recognised, and how it is answered.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Asked {
    /// The row that asks. Its first group is the title, else the row is.
    pub title: Pattern,
    /// A row further up at which the question's frame begins; what stands between is its detail.
    #[serde(default)]
    pub top: Option<Pattern>,
    /// A row that offers a choice, with groups `mark` (when it is the selected one), `n` and `label`.
    #[serde(default)]
    pub choice: Option<Pattern>,
    /// The keys that take a choice: `{n}` is its number.
    #[serde(default = "its_number")]
    pub keys: Vec<String>,
    /// The labels that allow it once.
    #[serde(default)]
    pub allow: Option<Pattern>,
    /// The labels that allow it from now on.
    #[serde(default)]
    pub always: Option<Pattern>,
    /// The labels that refuse it.
    #[serde(default)]
    pub deny: Option<Pattern>,
    /// The keys that refuse it, where they are others than its choice's own.
    #[serde(default)]
    pub deny_keys: Vec<String>,
    /// The choices, where they cannot be read off the screen row by row.
    #[serde(default)]
    pub choices: Vec<FixedChoice>,
    /// A row under the question that must be there: the hint, or the row with the choices.
    #[serde(default)]
    pub foot: Option<Pattern>,
    /// Where it can be.
    #[serde(default)]
    pub region: Region,
    /// Whether the input box is still drawn while it stands. Else a box under it means that it is only quoted.
    #[serde(default)]
    pub with_composer: bool,
    /// Whether it is asked while the agent starts: whether to trust a folder, whether to update.
    #[serde(default)]
    pub startup: bool,
    /// Whether it is the prompt for the rest of what was begun: a text becomes a part of that.
    #[serde(default)]
    pub continues: bool,
    /// Whether it is asked only while the command itself owns its terminal, and no child of it.
    #[serde(default)]
    pub own: bool,
    /// The label of the choice that is taken at the start, where the user has start-up dialogs answered. What is about
    /// trust, a login or permissions is never answered, whatever stands here.
    #[serde(default)]
    pub answer: Option<Pattern>,
    /// How much it counts as a sign of *asking*.
    #[serde(default = "much")]
    pub weight: u32,
    /// Whether it is switched off.
    #[serde(default)]
    pub off: bool,
}

/// A choice that a profile knows by itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedChoice {
    /// What it says.
    pub label: String,
    /// What it means.
    pub kind: ChoiceKind,
    /// The keys that take it.
    pub keys: Vec<String>,
}

fn its_number() -> Vec<String> {
    vec!["{n}".to_owned()]
}

fn much() -> u32 {
    // Over a title, under what the program reports of itself.
    75
}

/// A question that stands on the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundQuestion {
    /// Its name in the profile.
    pub name: String,
    /// What is asked.
    pub title: String,
    /// What it is about: the command, the file.
    pub detail: String,
    /// What can be answered.
    pub choices: Vec<Choice>,
    /// The choice that Enter would take, where the screen shows it.
    pub selected: Option<usize>,
    /// Whether it belongs to the agent's start.
    pub startup: bool,
    /// Whether it waits for the rest of what was begun.
    pub continues: bool,
    /// The choice that the profile takes at the start, where it declares one.
    pub declared: Option<usize>,
}

/// What a dialog is about that only a person answers.
const FOR_A_PERSON: &[&str] = &[
    "trust",
    "log in",
    "login",
    "sign in",
    "sign-in",
    "signin",
    "permission",
    "allow",
    "approve",
    "api key",
    "password",
    "token",
    "credential",
    "account",
    "bypass",
    "danger",
    "accept",
    "agree",
    "consent",
];

impl FoundQuestion {
    /// The choice that is taken at the start without a person: declared by the profile, and about nothing that only a
    /// person decides.
    pub fn startup_choice(&self) -> Option<usize> {
        let for_a_person = |text: &str| {
            let text = text.to_lowercase();
            FOR_A_PERSON.iter().any(|word| text.contains(word))
        };
        let mut texts = [&self.name, &self.title, &self.detail]
            .into_iter()
            .chain(self.choices.iter().map(|choice| &choice.label));
        if !self.startup || texts.any(|text| for_a_person(text)) {
            return None;
        }
        self.declared
    }

    /// The first choice of a kind.
    pub fn choice(&self, kind: ChoiceKind) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.kind == kind)
    }

    /// The choice that a person names: its number from 1, or how its label begins, whatever the case.
    pub fn named(&self, word: &str) -> Option<&Choice> {
        if let Ok(number) = word.parse::<usize>() {
            return self.choices.get(number.checked_sub(1)?);
        }
        let word = word.to_lowercase();
        let begins = |choice: &&Choice| choice.label.to_lowercase().starts_with(&word);
        let exact = self.choices.iter().find(|choice| choice.label.to_lowercase() == word);
        let mut found = self.choices.iter().filter(begins);
        exact.or_else(|| found.next().filter(|_| found.next().is_none()))
    }
}

impl Profile {
    /// The question that stands on the screen, where the profile recognises one.
    pub fn question(&self, look: &Look<'_>) -> Option<FoundQuestion> {
        self.asked(look).map(|(_, _, question)| question)
    }

    /// Whether it is known what the prompt for the rest of something looks like.
    pub fn knows_continuations(&self) -> bool {
        self.questions.values().any(|asked| asked.continues && !asked.off)
    }

    pub(crate) fn asked(&self, look: &Look<'_>) -> Option<(&str, &Asked, FoundQuestion)> {
        let composer = self.locate(look).map(|(rows, _)| rows.start);
        self.questions
            .iter()
            .filter(|(_, asked)| !asked.off)
            .filter_map(|(name, asked)| {
                let (row, question) = asked.read(name, look, composer)?;
                Some((row, (name.as_str(), asked, question)))
            })
            // The lowest on the screen is the one that keys go to.
            .max_by_key(|(row, _)| *row)
            .map(|(_, found)| found)
    }
}

impl Asked {
    fn read(&self, name: &str, look: &Look<'_>, composer: Option<usize>) -> Option<(usize, FoundQuestion)> {
        if self.own && look.foreground != Some(true) {
            return None;
        }
        let rows = self.region.rows(look, None);
        let bottom = rows.end;
        let row = |index: usize| match self.region {
            Region::BeforeCursor => up_to(&look.rows[index], look.cursor.1),
            _ => unframed(&look.rows[index]).to_owned(),
        };
        let is_choice = |row: &str| self.choice.as_ref().is_some_and(|choice| choice.is_match(row));
        let asks = |index: &usize| {
            let row = row(*index);
            self.title.is_match(&row) && !is_choice(&row)
        };
        let at = rows.rev().find(asks)?;
        if !self.with_composer && composer.is_some_and(|row| row > at) {
            return None;
        }
        let foot = match &self.foot {
            Some(foot) => (at + 1..bottom).find(|index| foot.is_match(unframed(&look.rows[*index])))?,
            None => bottom,
        };
        let (first, mut choices, selected) = self.choices(look, at, foot);
        if choices.is_empty() {
            return None;
        }
        // A long question pushes its last choices off the screen. Their key still works.
        if !self.deny_keys.is_empty() && choices.iter().all(|choice| choice.kind != ChoiceKind::Deny) {
            let keys = self.deny_keys.clone();
            choices.push(Choice { label: "No".to_owned(), keys, kind: ChoiceKind::Deny });
        }
        // Where the frame's top has left the screen, everything above belongs to it.
        let from = match &self.top {
            Some(top) => (0..at).rev().find(|index| top.is_match(look.rows[*index].trim())).unwrap_or(0),
            None => at,
        };
        let detail: Vec<&str> = (from..first)
            .filter(|index| *index != at)
            .map(|index| bare(&look.rows[index]))
            .filter(|row| row.chars().any(|c| !c.is_whitespace() && !('\u{2500}'..='\u{259f}').contains(&c)))
            .collect();
        let title = self.title.pick(&row(at))?.trim().to_owned();
        let declared = self.answer.as_ref().filter(|_| self.startup).and_then(|answer| {
            let mut fit = (0..choices.len()).filter(|index| answer.is_match(&choices[*index].label));
            // Of two that fit, neither was meant.
            fit.next().filter(|_| fit.next().is_none())
        });
        let question = FoundQuestion {
            name: name.to_owned(),
            title,
            detail: detail.join("\n"),
            choices,
            selected,
            startup: self.startup,
            continues: self.continues,
            declared,
        };
        Some((at, question))
    }

    /// The row of the first choice, the choices, and which of them is selected.
    fn choices(&self, look: &Look<'_>, at: usize, bottom: usize) -> (usize, Vec<Choice>, Option<usize>) {
        let Some(pattern) = &self.choice else {
            let fixed = self.choices.iter().map(|fixed| Choice {
                label: fixed.label.clone(),
                keys: fixed.keys.clone(),
                kind: fixed.kind,
            });
            return (bottom, fixed.collect(), None);
        };
        let (mut first, mut choices, mut selected) = (bottom, Vec::new(), None);
        for (index, row) in look.rows.iter().enumerate().take(bottom).skip(at + 1) {
            let row = unframed(row);
            let Some(label) = pattern.group(row, "label") else { continue };
            // What is asked about may look like choices: the last list that begins with 1 is them.
            if choices.is_empty() || pattern.group(row, "n") == Some("1") {
                (first, choices, selected) = (index, Vec::new(), None);
            }
            if pattern.group(row, "mark").is_some_and(|mark| !mark.trim().is_empty()) {
                selected = Some(choices.len());
            }
            let count = choices.len() + 1;
            let number = pattern.group(row, "n").map_or_else(|| count.to_string(), str::to_owned);
            choices.push(self.take(label.trim(), &number));
        }
        (first, choices, selected)
    }

    fn take(&self, label: &str, number: &str) -> Choice {
        let is = |pattern: &Option<Pattern>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(label));
        let kind = if is(&self.deny) {
            ChoiceKind::Deny
        } else if is(&self.allow) {
            ChoiceKind::Allow
        } else if is(&self.always) {
            ChoiceKind::Always
        } else {
            ChoiceKind::Other
        };
        // What the profile knows of a choice by its label goes before what follows from its number.
        if let Some(fixed) = self.choices.iter().find(|fixed| fixed.label == label) {
            return Choice { label: label.to_owned(), keys: fixed.keys.clone(), kind: fixed.kind };
        }
        let keys = match kind {
            ChoiceKind::Deny if !self.deny_keys.is_empty() => self.deny_keys.clone(),
            _ => self.keys.iter().map(|key| key.replace("{n}", number)).collect(),
        };
        Choice { label: label.to_owned(), keys, kind }
    }
}

/// A row without any of the frames around it.
fn bare(row: &str) -> &str {
    let mut row = row.trim();
    while unframed(row).trim() != row {
        row = unframed(row).trim();
    }
    row
}
