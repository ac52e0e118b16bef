//! Writes what the fake agent really received to a file, before it shows anything.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

/// What the agent really got: one JSON object a line, on disk before anything is shown.
pub(super) struct Journal {
    file: Option<File>,
    messages: u64,
}

impl Journal {
    /// Appends to this file, or keeps nothing.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, String> {
        let file = path
            .map(|path| {
                let opened = OpenOptions::new().create(true).append(true).open(path);
                opened.map_err(|error| format!("{}: {error}", path.display()))
            })
            .transpose()?;
        Ok(Self { file, messages: 0 })
    }

    /// A message that was submitted; returns its number.
    pub(super) fn message(&mut self, text: &str) -> u64 {
        self.messages += 1;
        let number = self.messages;
        self.line(&json!({ "n": number, "text": text }));
        number
    }

    /// Something else that happened.
    pub(super) fn event(&mut self, event: &str, text: &str) {
        let line =
            if text.is_empty() { json!({ "event": event }) } else { json!({ "event": event, "text": text }) };
        self.line(&line);
    }

    fn line(&mut self, value: &Value) {
        if let Some(file) = &mut self.file {
            // One write, so that a reader never sees half a line. A full disk is the test's own trouble.
            let _ = file.write_all(format!("{value}\n").as_bytes());
        }
    }
}
