//! The files that a pattern names below an agent's directory.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wharf_boundary::{Dir, Kind};

/// So many directory entries are looked at for one question; the newest names come first.
const MAX_ENTRIES: usize = 20_000;
/// So deep does a `**` go.
const MAX_DEPTH: usize = 6;
/// The longest id of a conversation.
const MAX_ID_LEN: usize = 256;

/// A file below an agent's directory, and when it was last written.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) modified: SystemTime,
}

/// The regular files that parts of a pattern with `*` and `**` name below a directory. No link is followed.
pub(super) fn files(dir: &Dir, parts: &[String]) -> Vec<Found> {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let mut walk = Walk { left: MAX_ENTRIES, found: Vec::new() };
    walk.enter(dir, Path::new(""), &parts, 0);
    walk.found
}

/// Whether a text can be the id of a conversation: a part of a name, and nothing that a pattern or a path reads otherwise.
pub(super) fn is_id(id: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, '/' | '*');
    !id.is_empty() && id.len() <= MAX_ID_LEN && !id.contains(odd) && !id.contains("..")
}

struct Walk {
    left: usize,
    found: Vec<Found>,
}

impl Walk {
    /// Goes on in a directory, which has this path below the first.
    fn enter(&mut self, dir: &Dir, at: &Path, parts: &[&str], depth: usize) {
        let Some((part, rest)) = parts.split_first() else { return };
        if !part.contains('*') {
            self.step(dir, at, part, rest);
            return;
        }
        if *part == "**" {
            self.enter(dir, at, rest, 0);
        }
        for (name, kind) in self.entries(dir) {
            if *part == "**" {
                if kind == Kind::Directory
                    && depth < MAX_DEPTH
                    && let Ok(inner) = dir.dir(&name)
                {
                    self.enter(&inner, &at.join(&name), parts, depth + 1);
                }
            } else if matches(part, &name) && matches!(kind, Kind::Directory | Kind::File) {
                self.step(dir, at, &name, rest);
            }
        }
    }

    /// Takes a file, or goes on in a directory.
    fn step(&mut self, dir: &Dir, at: &Path, name: &str, rest: &[&str]) {
        let path = at.join(name);
        if rest.is_empty() {
            if let Ok((_, modified)) = dir.file_stamp(name) {
                self.found.push(Found { path, modified });
            }
        } else if let Ok(inner) = dir.dir(name) {
            self.enter(&inner, &path, rest, 0);
        }
    }

    /// The entries of a directory, the last name first: dates and counters make that the newest.
    fn entries(&mut self, dir: &Dir) -> Vec<(String, Kind)> {
        let entries = dir.entries(self.left).unwrap_or_default();
        self.left -= entries.len();
        let text = |(name, kind): (std::ffi::OsString, Kind)| Some((name.into_string().ok()?, kind));
        let mut names: Vec<(String, Kind)> = entries.into_iter().filter_map(text).collect();
        names.sort_by(|a, b| b.0.cmp(&a.0));
        names
    }
}

/// Whether a name fits a pattern with `*`.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        assert!(matches("rollout-*.jsonl", "rollout-2026.jsonl"));
        assert!(matches("rollout-*-ab*.jsonl", "rollout-2026-abc.jsonl"));
        assert!(matches("*", "x"));
        assert!(!matches("rollout-*.jsonl", "rollout.jsonl"));
        assert!(!matches("a*a", "a"));
        assert!(matches("same", "same") && !matches("same", "same2"));
    }

    #[test]
    fn two_stars_stand_for_directories() {
        let dir = tempfile::tempdir().expect("tempdir");
        for path in ["a/2026/11/15", "a/2025"] {
            std::fs::create_dir_all(dir.path().join(path)).expect("dirs");
        }
        for path in ["a/2026/11/15/r-2.jsonl", "a/2025/r-1.jsonl", "a/2025/other", "a/r-0.jsonl"] {
            std::fs::write(dir.path().join(path), "").expect("file");
        }
        let top = Dir::open(dir.path()).expect("dir");
        let files = |pattern: &str| files(&top, &pattern.split('/').map(str::to_owned).collect::<Vec<_>>());
        let names: Vec<String> = files("a/**/r-*.jsonl")
            .iter()
            .map(|found| found.path.file_name().expect("name").to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["r-0.jsonl", "r-2.jsonl", "r-1.jsonl"]);
        assert_eq!(files("a/2025/r-1.jsonl")[0].path, Path::new("a/2025/r-1.jsonl"));
        assert!(files("nowhere/at/all/*.jsonl").is_empty());
    }
}
