//! What a path meant when a session was first started, and what a place mounts.

use serde::{Deserialize, Serialize};

use crate::Text;

/// A path of the host as it was understood at a session's first start. Later starts get the same, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// What it is for.
    pub kind: PinKind,
    /// The path as it was given.
    pub given: Text,
    /// The path without links.
    pub path: Text,
    /// The device of the directory: of itself, or of the one that a file is in.
    pub device: u64,
    /// The id of that directory's file system, which a restart of the host does not change.
    #[serde(default)]
    pub filesystem: u64,
    /// The inode of that directory.
    pub inode: u64,
    /// The name in that directory, of what is no directory itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Why it is not used, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<String>,
}

/// What a pinned path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinKind {
    /// It is mounted into a container.
    Mount,
    /// It is a secret of a container.
    Secret,
    /// It is the repository of a work tree that is mounted.
    Worktree,
    /// A sandbox may read or change it.
    Sandbox,
    /// Something of a newer version.
    #[serde(other)]
    Other,
}

/// What a path must lead to before anything of a session runs: who mounts or opens it resolves it once more than who checked
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The path, without links, as it is in the session's place.
    pub path: Text,
    /// The device that it must be on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

/// One mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    /// What is mounted: a path of the host, or the name of a volume; empty for one without a name.
    pub source: Text,
    /// Where it is in the container.
    pub target: Text,
    /// Whether it cannot be changed from inside.
    #[serde(default)]
    pub read_only: bool,
    /// Who wanted it.
    pub by: MountedBy,
    /// What it is, where its paths do not say so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
}

/// Who wanted a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountedBy {
    /// Whoever started the session.
    User,
    /// The image.
    Image,
    /// Wharf itself.
    Wharf,
    /// Somebody of a newer version.
    #[serde(other)]
    Other,
}

impl Pin {
    /// What it stands for, in words for people.
    pub fn words(&self) -> String {
        let what = if self.name.is_some() { "a file of the directory" } else { "the directory" };
        format!("{what} with inode {} on device {}", self.inode, device_words(self.device))
    }
}

impl MountedBy {
    /// The stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Image => "image",
            Self::Wharf => "wharf",
            Self::Other => "other",
        }
    }
}

/// A device as `stat` and `/proc/self/mountinfo` show it.
pub fn device_words(device: u64) -> String {
    // As glibc takes them apart: both halves are split.
    let major = ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff);
    let minor = ((device >> 12) & 0xffff_ff00) | (device & 0xff);
    format!("{major}:{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_shown_as_the_system_does() {
        assert_eq!(device_words(0xfe00), "254:0");
        assert_eq!(device_words(0x0010_3501), "53:257");
    }
}
