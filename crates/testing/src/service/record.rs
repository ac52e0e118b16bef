//! Records the user turns and command results that reached the model service.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Value, json};

/// A text that the user of an agent submitted, as the agent handed it to its model.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Turn {
    /// From 1, in the order in which they reached the service.
    pub n: usize,
    /// The exact text.
    pub text: String,
}

/// What reached the service.
#[derive(Debug, Default)]
pub struct RecordedRequest {
    /// The user turns.
    pub turns: Vec<Turn>,
    /// Requests that are no part of the conversation: titles, summaries, warm-ups.
    pub side: usize,
    /// Answers that the agent did not wait for: interrupted turns.
    pub cut: usize,
    /// What commands gave back, granted or not.
    pub results: Vec<String>,
    file: Option<File>,
}

impl RecordedRequest {
    pub(super) fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose()?;
        Ok(Self { file, ..Self::default() })
    }

    /// Takes all user texts of a request. Each request carries the whole conversation, so a text is new when the
    /// request has it more often than the record.
    pub(super) fn users(&mut self, agent: &str, texts: &[String]) {
        for (at, text) in texts.iter().enumerate() {
            let times = texts[..=at].iter().filter(|other| *other == text).count();
            let known = self.turns.iter().filter(|turn| turn.text == *text).count();
            if times > known {
                let turn = Turn { n: self.turns.len() + 1, text: text.clone() };
                self.line(&json!({ "agent": agent, "n": turn.n, "text": turn.text }));
                self.turns.push(turn);
            }
        }
    }

    /// Takes the results of commands, of the whole conversation again.
    pub(super) fn results(&mut self, agent: &str, results: &[String]) {
        for result in results.iter().skip(self.results.len()) {
            let line = json!({ "agent": agent, "event": "result", "text": result });
            if let Some(file) = &mut self.file {
                let _ = writeln!(file, "{line}");
            }
        }
        if results.len() > self.results.len() {
            self.results = results.to_vec();
        }
    }

    pub(super) fn side(&mut self, agent: &str) {
        self.side += 1;
        self.line(&json!({ "agent": agent, "event": "side" }));
    }

    pub(super) fn cut(&mut self, agent: &str) {
        self.cut += 1;
        self.line(&json!({ "agent": agent, "event": "cut" }));
    }

    fn line(&mut self, line: &Value) {
        if let Some(file) = &mut self.file {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_new_when_the_conversation_has_it_once_more() {
        let mut record = RecordedRequest::default();
        let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        record.users("a", &texts(&["one"]));
        record.users("a", &texts(&["one", "two"]));
        record.users("a", &texts(&["one", "two"]));
        record.users("a", &texts(&["two", "two"]));
        let got: Vec<&str> = record.turns.iter().map(|turn| turn.text.as_str()).collect();
        assert_eq!(got, ["one", "two", "two"]);
    }
}
