//! Applies a profile's rules to the screen and picks the finding that decides the state.

use serde::Serialize;
use wharf_model::{Source, State};

use crate::{Look, Profile};

/// What one rule makes of what is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The state that it stands for.
    pub state: State,
    /// Who says so.
    pub source: Source,
    /// The rule's name in the profile.
    pub rule: String,
    /// What was seen.
    pub evidence: String,
    /// How much it counts.
    pub weight: u32,
}

impl Profile {
    /// Everything that the rules find, the weightiest first.
    pub fn recognise(&self, look: &Look<'_>) -> Vec<Finding> {
        let composer = self.locate(look);
        let place = composer.as_ref().map(|(rows, composer)| (rows, composer.text.as_str()));
        let mut findings: Vec<Finding> = self
            .rules
            .iter()
            .filter_map(|(name, rule)| {
                Some(Finding {
                    state: rule.state,
                    source: rule.seen.source(),
                    rule: name.clone(),
                    evidence: rule.evidence(look, place)?,
                    weight: rule.weight(),
                })
            })
            .collect();
        if let Some((name, asked, question)) = self.asked(look) {
            findings.push(Finding {
                state: State::Asking,
                source: Source::Screen,
                rule: format!("question.{name}"),
                evidence: if question.continues {
                    format!("it waits for the rest of what was begun, at {:?}", question.title)
                } else {
                    format!("the screen asks {:?}", question.title)
                },
                weight: asked.weight,
            });
        }
        findings.sort_by_key(|finding| std::cmp::Reverse((finding.weight, urgency(finding.state))));
        findings
    }

    /// The finding that decides: the weightiest, and among equals a question before work before rest.
    pub fn decide(&self, findings: &[Finding]) -> Option<Finding> {
        findings.iter().max_by_key(|finding| (finding.weight, urgency(finding.state))).cloned()
    }
}

fn urgency(state: State) -> u8 {
    match state {
        State::Asking => 4,
        State::Working => 3,
        State::Starting => 2,
        State::Idle => 1,
        _ => 0,
    }
}
