//! Makes a message safe to paste into an agent, or refuses it: commands, control characters, paste ends.

use serde::{Deserialize, Serialize};
use wharf_model::{Code, Failure};

use crate::{Profile, ReceivedChange};

/// What an agent takes for something else than text, and what is done about it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextRules {
    /// A first `!` runs the rest as a shell command.
    pub bang: Care,
    /// A first `/` makes it a command of the agent.
    pub slash: Care,
    /// A first `#` does not make it a message.
    pub hash: Care,
    /// A last `\` turns the submit key into a line break.
    pub backslash: Care,
    /// A last `@name` opens a list that takes the submit key.
    pub mention: Care,
    /// What the agent itself does to a text, in this order.
    pub changes: Vec<ReceivedChange>,
}

/// What is done about a text that an agent would take for something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Care {
    /// Nothing: it is text to this agent.
    #[default]
    Allow,
    /// It goes, and the receipt says what it is.
    Note,
    /// It goes with a space after it, which the agent drops.
    Space,
    /// The Escape key is pressed before the submit key.
    Escape,
    /// It is refused, unless the sender says that it is meant.
    Refuse,
}

/// A text that is safe to hand over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Prepared {
    /// The text to paste or type.
    pub text: String,
    /// What was changed and what is to be known, in words.
    pub notes: Vec<String>,
    /// Keys to press after the text and before the submit key.
    pub presses_before_submit: Vec<String>,
    /// Whether it must be pasted: typed, a line break would submit a part, or a tab complete a word.
    pub needs_paste: bool,
}

impl Profile {
    /// Makes a text safe to hand over, or refuses it. `raw` says that it is meant as it is.
    pub fn prepare(&self, text: &str, raw: bool) -> Result<Prepared, Failure> {
        let mut prepared = Prepared::default();
        if raw {
            prepared.text = without_paste_end(text, &mut prepared.notes);
            return Ok(prepared);
        }
        let mut text = clean(text, &mut prepared.notes);
        if text.trim().is_empty() {
            return Err(Failure::new(Code::Refused, "there is no text to send")
                .hint("a key alone is pressed with `wharf keys NAME Enter`"));
        }
        for (care, found, what) in self.hazards(&text) {
            if !found {
                continue;
            }
            match care {
                Care::Allow => {}
                Care::Note => prepared.notes.push(what),
                Care::Space => {
                    text.push(' ');
                    prepared.notes.push(format!("{what}: a space was added"));
                }
                Care::Escape => {
                    prepared.presses_before_submit.push("Escape".to_owned());
                    prepared.notes.push(format!("{what}: Escape is pressed first"));
                }
                Care::Refuse => {
                    return Err(Failure::new(Code::Refused, what)
                        .hint("send it with --raw if it is meant, or put a word before it"));
                }
            }
        }
        prepared.needs_paste = text.contains(['\n', '\t']);
        prepared.text = text;
        Ok(prepared)
    }

    fn hazards(&self, text: &str) -> [(Care, bool, String); 5] {
        let (start, end) = (text.trim_start(), text.trim_end_matches([' ', '\t']));
        let rules = &self.text;
        let title = &self.title;
        let command = start.split_whitespace().next().unwrap_or_default();
        [
            (
                rules.bang,
                start.starts_with('!'),
                format!("{title} runs a text that starts with ! as a shell command, without asking"),
            ),
            (
                rules.slash,
                is_command(command),
                format!("{title} takes a text that starts with {command} for a command of its own"),
            ),
            (
                rules.hash,
                start.starts_with('#'),
                format!("{title} does not take a text that starts with # for a message"),
            ),
            (
                rules.backslash,
                end.ends_with('\\') && end.len() == text.len(),
                format!("{title} takes Enter after a last \\ for a line break"),
            ),
            (
                rules.mention,
                end.len() == text.len() && last_word(text).starts_with('@'),
                format!("{title} opens a list for a last {:?}, which takes Enter", last_word(text)),
            ),
        ]
    }
}

fn last_word(text: &str) -> &str {
    text.rsplit(char::is_whitespace).next().unwrap_or_default()
}

/// `/word` is a command, `/usr/bin` and `//` are not.
fn is_command(word: &str) -> bool {
    word.strip_prefix('/').is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || ":_-.".contains(c))
    })
}

/// Line ends become one kind, and control characters go: in a terminal they are keys.
fn clean(text: &str, notes: &mut Vec<String>) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut dropped = 0_usize;
    let clean: String = lines
        .chars()
        .filter(|c| {
            let bad = c.is_control() && !matches!(c, '\n' | '\t');
            dropped += usize::from(bad);
            !bad
        })
        .collect();
    if dropped > 0 {
        let what = if dropped == 1 { "one control character was" } else { "control characters were" };
        notes.push(format!("{what} taken out ({dropped})"));
    }
    clean
}

/// Even a raw text may not end its own paste: what follows would be keys.
fn without_paste_end(text: &str, notes: &mut Vec<String>) -> String {
    let safe = text.replace("\u{1b}[201~", "[201~").replace("\u{9b}201~", "201~");
    if safe.len() != text.len() {
        notes.push("a paste-end sequence was made safe".to_owned());
        // Taking one out may have made another.
        return without_paste_end(&safe, &mut Vec::new());
    }
    safe
}
