use std::path::{Path, PathBuf};

/// So many directory entries are looked at for one question; the newest names come first.
const MOST: usize = 20_000;
/// So deep does a `**` go.
const DEEPEST: usize = 6;

/// The files that a pattern with `*` and `**` names.
pub(super) fn files(pattern: &str) -> Vec<PathBuf> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let mut walk = Walk { left: MOST, found: Vec::new() };
    walk.enter(Path::new("/"), &parts, 0);
    walk.found
}

struct Walk {
    left: usize,
    found: Vec<PathBuf>,
}

impl Walk {
    fn enter(&mut self, dir: &Path, parts: &[&str], depth: usize) {
        let Some((part, rest)) = parts.split_first() else { return };
        if !part.contains('*') {
            let path = dir.join(part);
            match rest.is_empty() {
                true if path.is_file() => self.found.push(path),
                true => {}
                false => self.enter(&path, rest, 0),
            }
            return;
        }
        if *part == "**" {
            self.enter(dir, rest, 0);
        }
        for (name, is_dir) in self.entries(dir) {
            let path = dir.join(&name);
            if *part == "**" {
                if is_dir && depth < DEEPEST {
                    self.enter(&path, parts, depth + 1);
                }
            } else if matches(part, &name) {
                match rest.is_empty() {
                    true if !is_dir => self.found.push(path),
                    true => {}
                    false => self.enter(&path, rest, 0),
                }
            }
        }
    }

    /// The entries of a directory, the last name first: dates and counters make that the newest.
    fn entries(&mut self, dir: &Path) -> Vec<(String, bool)> {
        let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
        let mut names: Vec<(String, bool)> = entries
            .take(self.left)
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let is_dir = entry.file_type().ok()?.is_dir();
                Some((entry.file_name().into_string().ok()?, is_dir))
            })
            .collect();
        self.left = self.left.saturating_sub(names.len());
        names.sort_by(|a, b| b.cmp(a));
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
        let found = files(&format!("{}/a/**/r-*.jsonl", dir.path().display()));
        let names: Vec<String> =
            found.iter().map(|path| path.file_name().expect("name").to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["r-0.jsonl", "r-2.jsonl", "r-1.jsonl"]);
        assert!(files("/nowhere/at/all/*.jsonl").is_empty());
    }
}
