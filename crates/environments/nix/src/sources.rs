//! The files of this host that decide a dev shell.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use wharf_boundary::{Dir, Kind};

/// How many entries of a directory that git does not have are looked at, and how many files are read.
const MAX_ENTRIES: usize = 50_000;
/// How many words that look like paths are looked at.
const MAX_WORDS: usize = 200_000;
/// How large a file may be that counts with its content; of a larger one size and time count.
const MAX_CONTENT_LEN: u64 = 4 << 20;
/// How much is read of all files together.
const MAX_TOTAL_LEN: u64 = 256 << 20;

/// The `.nix` files and locks below a directory that git does not have; none where there are too many to look at.
pub(crate) fn walk(root: &Path) -> Option<Vec<PathBuf>> {
    let top = Dir::open(root).ok()?;
    let (mut found, mut dirs, mut left) = (Vec::new(), vec![PathBuf::new()], MAX_ENTRIES);
    while let Some(dir) = dirs.pop() {
        // What cannot be read here cannot be read by nix either, which says so.
        let here = if dir.as_os_str().is_empty() { top.try_clone() } else { top.dir(&dir) };
        let Ok(entries) = here.and_then(|here| here.entries(left + 1)) else { continue };
        left = left.checked_sub(entries.len())?;
        for (name, kind) in entries {
            let path = dir.join(&name);
            match kind {
                Kind::Directory if name != ".git" => dirs.push(path),
                Kind::File | Kind::Link if decides(&path) => found.push(root.join(path)),
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

/// These files of a project and those that they name as paths, in order, each with a digest of what counts of it; none
/// where that is too much to read.
pub(crate) fn contents(root: &Path, files: Vec<PathBuf>) -> Option<Vec<(PathBuf, u64)>> {
    contents_within(MAX_TOTAL_LEN, root, files)
}

fn contents_within(max_total_len: u64, root: &Path, files: Vec<PathBuf>) -> Option<Vec<(PathBuf, u64)>> {
    let mut reader = Reader { top: Dir::open(root).ok()?, root, left: max_total_len, words: MAX_WORDS };
    let all: BTreeSet<PathBuf> = files.into_iter().map(|file| plain(&file)).collect();
    let (mut found, mut named) = (Vec::new(), BTreeSet::new());
    for file in &all {
        let (digest, text) = reader.content(file)?;
        if decides(file) {
            named.extend(reader.names(file, &text)?);
        }
        found.push((file.clone(), digest));
    }
    for file in named.into_iter().filter(|file| !all.contains(file)) {
        // Only files count: a word may mean anything.
        if reader.open(&file).is_ok() {
            found.push((file.clone(), reader.content(&file)?.0));
        }
    }
    (found.len() <= MAX_ENTRIES).then_some(found)
}

/// Reads a project's files. Links are followed as nix follows them: inside the project.
struct Reader<'a> {
    top: Dir,
    root: &'a Path,
    left: u64,
    words: usize,
}

impl Reader<'_> {
    /// Opens a regular file, and nothing else.
    fn open(&self, file: &Path) -> io::Result<std::fs::File> {
        match (file.strip_prefix(self.root), file.parent(), file.file_name()) {
            (Ok(below), _, _) => self.top.open_file_beneath(below),
            // Named as `../x` from the root: nobody's link leads there.
            (_, Some(dir), Some(name)) => Dir::open(dir)?.open_file(name),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A digest of what counts of a file, and its text where that counts; none where too much was read already.
    fn content(&mut self, file: &Path) -> Option<(u64, Vec<u8>)> {
        let mut hasher = DefaultHasher::new();
        let link = file.strip_prefix(self.root).ok().and_then(|below| self.top.link_target(below).ok());
        link.hash(&mut hasher);
        let mut text = Vec::new();
        match self.open(file).and_then(|file| Ok((file.metadata()?, file))) {
            Ok((meta, _)) if meta.len() > MAX_CONTENT_LEN => {
                (meta.len(), meta.modified().ok()).hash(&mut hasher);
            }
            Ok((_, file)) => {
                let read = file.take(MAX_CONTENT_LEN).read_to_end(&mut text);
                (read.is_ok(), &text).hash(&mut hasher);
            }
            Err(error) => error.kind().hash(&mut hasher),
        }
        self.left = self.left.checked_sub(text.len() as u64)?;
        Some((hasher.finish(), text))
    }

    /// The paths that the text of a `.nix` file names, such as `./toolchain.toml`. One too many costs a capture, no more.
    fn names(&mut self, file: &Path, text: &[u8]) -> Option<BTreeSet<PathBuf>> {
        let Some(dir) = file.parent() else { return Some(BTreeSet::new()) };
        let text = String::from_utf8_lossy(text);
        let part = |c: char| c.is_ascii_alphanumeric() || "._-+/".contains(c);
        let mut names = BTreeSet::new();
        for word in text.split(|c| !part(c)).filter(|word| word.starts_with("./") || word.starts_with("../"))
        {
            self.words = self.words.checked_sub(1)?;
            names.insert(plain(&dir.join(word)));
        }
        Some(names)
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_no_file_of_the_project_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        fs::write(root.join("flake.nix"), "{ }").unwrap();
        let odd = root.join("z.nix");
        let key = || {
            let (done, answer) = std::sync::mpsc::channel();
            let root = root.clone();
            std::thread::spawn(move || done.send(contents(&root, walk(&root).unwrap()).unwrap()));
            answer.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for ever")
        };
        assert!(std::process::Command::new("mkfifo").arg(&odd).status().unwrap().success());
        key();
        for target in ["/dev/zero", "/dev/tty", "/nowhere", "flake.nix/..", "z.nix"] {
            fs::remove_file(&odd).unwrap();
            std::os::unix::fs::symlink(target, &odd).unwrap();
            key();
        }
        // What a link inside the project leads to counts, as it does for nix.
        fs::remove_file(&odd).unwrap();
        fs::write(root.join("text"), "1").unwrap();
        std::os::unix::fs::symlink("text", &odd).unwrap();
        let before = key();
        assert_eq!(before, key());
        fs::write(root.join("text"), "2").unwrap();
        assert_ne!(before, key());
        // Holes take no room on a disk, and would in memory.
        for name in ["1.nix", "2.nix"] {
            fs::File::create(root.join(name)).unwrap().set_len(64 << 10).unwrap();
        }
        assert_eq!(contents_within(100 << 10, &root, walk(&root).unwrap()), None, "too much to read");
        assert!(contents_within(200 << 10, &root, walk(&root).unwrap()).is_some());
    }

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
        let found = contents(root.path(), walk(root.path()).unwrap()).unwrap();
        let mut names: Vec<String> = found
            .iter()
            .map(|(path, _)| path.canonicalize().unwrap().file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["flake.lock", "flake.nix", "shell.nix", "tools.toml", "versions"]);
    }
}
