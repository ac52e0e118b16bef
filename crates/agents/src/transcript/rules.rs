//! What the files of a conversation are called, and what their lines mean.

use serde::Deserialize;

use crate::{Paths, Shape};

/// Where an agent writes its conversations, and what the lines mean.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranscriptRules {
    /// The files: `${VAR:-default}`, `~`, `*` and `**` stand for what they stand for in a shell, `{id}` for the
    /// conversation's id, or for anything where that is not known.
    pub files: Vec<String>,
    /// Whether the file is a list that is written anew and loses its oldest entries, and not one that only grows.
    #[serde(default)]
    pub list: bool,
    /// Where a line says in which directory the agent runs. A file of another directory is another session's.
    #[serde(default)]
    pub dir: Option<Paths>,
    /// A file, from where the transcript stands, that holds the directory.
    #[serde(default)]
    pub dir_file: Option<String>,
    /// Where a line says which conversation it is.
    #[serde(default)]
    pub id: Option<Paths>,
    /// Where a line says when it was written.
    #[serde(default)]
    pub time: Option<Paths>,
    /// Where a line says which entry it is, where entries are written again when they change.
    #[serde(default)]
    pub entry: Option<Paths>,
    /// What the lines mean.
    pub line: Vec<Shape>,
}
