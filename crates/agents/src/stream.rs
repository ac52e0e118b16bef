//! Reads the JSON stream that an agent prints when it runs without a terminal.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use wharf_model::Text;

use crate::{Profile, Shape, Told, line::Lines, shape};

/// How the stream of JSON is read that an agent prints when it runs without a terminal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamRules {
    /// Arguments that make the program print it. One of them is enough.
    pub args: Vec<String>,
    /// What its lines mean.
    pub event: Vec<Shape>,
}

impl Profile {
    /// Whether a command line makes the program print a stream of JSON.
    pub fn streams(&self, argv: &[Text]) -> bool {
        argv.iter().any(|word| {
            let word = word.lossy();
            let value = word.split_once('=').map_or("", |(_, value)| value);
            self.stream.args.iter().any(|arg| *arg == word || arg == value)
        })
    }
}

/// Reads a stream of JSON as it comes: any pieces, lines of any length, in bounded memory.
#[derive(Debug)]
pub struct StreamJson {
    profile: Arc<Profile>,
    lines: Lines,
}

impl StreamJson {
    /// A reader at the stream's start.
    pub fn new(profile: Arc<Profile>) -> Self {
        Self { profile, lines: Lines::default() }
    }

    /// The facts in the lines that these bytes complete. A line that no rule knows is `other`.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Told> {
        let lines = self.lines.feed(bytes);
        lines.into_iter().flat_map(|line| self.read(&line.text, line.cut)).collect()
    }

    /// What a last line without an end says.
    pub fn finish(&mut self) -> Vec<Told> {
        let line = self.lines.finish();
        line.map(|line| self.read(&line.text, line.cut)).unwrap_or_default()
    }

    fn read(&self, line: &str, cut: u64) -> Vec<Told> {
        if line.trim().is_empty() {
            return Vec::new();
        }
        let mut told = match serde_json::from_str::<Value>(line) {
            Ok(value) => {
                let told = shape::read_all(&self.profile.stream.event, &value);
                if told.is_empty() { vec![Told::other(value)] } else { told }
            }
            // Something else that was printed there: a warning, a line that was cut off.
            Err(_) => vec![Told::other(json!({ "text": line }))],
        };
        if cut > 0 {
            for told in &mut told {
                if let Value::Object(data) = &mut told.data {
                    data.insert("cut".to_owned(), cut.into());
                }
            }
        }
        told
    }
}
