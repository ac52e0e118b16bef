//! Defines what a copy needs to know about a file in a session's place.

use serde::{Deserialize, Serialize};

use crate::{Millis, Text};

/// A file of a session's place, as far as a copy needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// Its last name, without the directories before it.
    pub name: Text,
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes.
    #[serde(default)]
    pub size: u64,
    /// Its permissions.
    #[serde(default)]
    pub mode: u32,
    /// When it was last changed.
    #[serde(default)]
    pub modified: Millis,
    /// Whom a new file there shall belong to, as user and group, where that is not whoever makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// Where it points, of a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Text>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe, a socket, or something of a newer version.
    #[serde(other)]
    Other,
}
