//! The files of this host that decide a dev shell.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How many entries of a directory that git does not have are looked at.
const MOST: usize = 50_000;
/// How large a file may be that counts with its content; of a larger one size and time count.
const LARGE: u64 = 4 << 20;

/// The `.nix` files and locks below a directory that git does not have; none where there are too many to look at.
pub(crate) fn walk(root: &Path) -> Option<Vec<PathBuf>> {
    let (mut found, mut dirs, mut seen) = (Vec::new(), vec![root.to_owned()], 0);
    while let Some(dir) = dirs.pop() {
        // What cannot be read here cannot be read by nix either, which says so.
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.filter_map(Result::ok) {
            seen += 1;
            if seen > MOST {
                return None;
            }
            let (path, name) = (entry.path(), entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && name != ".git" => dirs.push(path),
                Ok(kind) if !kind.is_dir() && decides(&path) => found.push(path),
                _ => {}
            }
        }
    }
    Some(found)
}

fn decides(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "nix")
        || path.file_name().is_some_and(|name| name == "flake.lock")
}

/// These files and those that they name as paths, in order, each with what counts of it.
pub(crate) fn contents(files: Vec<PathBuf>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: BTreeSet<PathBuf> = files.into_iter().collect();
    let named: Vec<PathBuf> = all.iter().filter(|file| decides(file)).flat_map(|file| names(file)).collect();
    all.extend(named);
    all.into_iter().map(|file| (content(&file), file)).map(|(content, file)| (file, content)).collect()
}

fn content(file: &Path) -> Vec<u8> {
    let Ok(meta) = fs::metadata(file) else { return b"missing".to_vec() };
    if meta.len() > LARGE {
        return format!("{} {:?}", meta.len(), meta.modified().ok()).into_bytes();
    }
    fs::read(file).unwrap_or_else(|error| error.to_string().into_bytes())
}

/// The files that a `.nix` file names as paths, such as `./toolchain.toml`. One too many costs a capture, no more.
fn names(file: &Path) -> Vec<PathBuf> {
    let Some(dir) = file.parent() else { return Vec::new() };
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let part = |c: char| c.is_ascii_alphanumeric() || "._-+/".contains(c);
    let words = text.split(|c| !part(c)).filter(|word| word.starts_with("./") || word.starts_with("../"));
    words.map(|word| dir.join(word)).filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_decide_are_found() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("flake.nix", "{ x = import ./nix/shell.nix; y = builtins.readFile ./tools.toml; }");
        write("flake.lock", "{}");
        write("nix/shell.nix", "builtins.readFile ../versions + ./none");
        write("tools.toml", "a");
        write("versions", "b");
        write("main.rs", "fn main() {}");
        write(".git/x.nix", "");
        let found = contents(walk(root.path()).unwrap());
        let mut names: Vec<String> = found
            .iter()
            .map(|(path, _)| path.canonicalize().unwrap().file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["flake.lock", "flake.nix", "shell.nix", "tools.toml", "versions"]);
    }
}
