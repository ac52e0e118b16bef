//! A project's own file, `wharf.toml`: where it is looked for, and when it is believed to be the user's.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wharf_boundary::{Dir, cached};

/// What it is called.
pub const PROJECT_FILE: &str = "wharf.toml";

/// A larger one is no project's file.
pub const MAX_PROJECT_FILE_LEN: u64 = 64 << 10;

/// A project's file as it was read, once: what is hashed is what is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Where it stands, without links on the way.
    pub path: PathBuf,
    /// What stands in it.
    pub text: String,
    /// SHA-256 of that, in hexadecimal digits.
    pub sha256: String,
}

/// A project's file that is not read, or not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedProject {
    /// Where it stands.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

impl ProjectFile {
    /// The nearest one at or above a directory. The search ends with the repository (the first directory with a `.git`) or
    /// with the home directory; where it would meet neither, only the directory itself is looked at.
    pub fn find(dir: &Path, home: Option<&Path>) -> Option<Result<Self, RefusedProject>> {
        let there = dir.canonicalize().ok()?;
        let home = home.and_then(|home| home.canonicalize().ok());
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let places = places(&there, home.as_deref(), |path| Some(exists(path)))?;
        let place = places.iter().find(|place| exists(&place.join(PROJECT_FILE)))?;
        Some(Self::read(place, &places))
    }

    /// Whether there surely is none, by what the kernel knows without asking a file system, which may never answer. Most
    /// directories have none, and whoever starts sessions there need not wait for another thread to look.
    pub fn is_surely_absent(dir: &Path, home: Option<&Path>) -> bool {
        let absent = || -> Option<bool> {
            let there = cached::canonical(dir)?;
            let home = home.map(|home| cached::canonical(home).ok_or(())).transpose().ok()?;
            for place in places(&there, home.as_deref(), cached::exists)? {
                if cached::exists(&place.join(PROJECT_FILE))? {
                    return Some(false);
                }
            }
            Some(true)
        };
        absent().unwrap_or(false)
    }

    /// The one in a directory. Everybody who can change the directories of the search could put one there, or take one away.
    fn read(place: &Path, searched: &[&Path]) -> Result<Self, RefusedProject> {
        let path = place.join(PROJECT_FILE);
        let refused = |why: String| RefusedProject { path: path.clone(), why };
        let failed = |error: &io::Error| {
            let why = if wharf_boundary::is_hostile(error) {
                format!("it is no regular file, or too large: {error}")
            } else {
                format!("it cannot be read: {error}")
            };
            refused(why)
        };
        for dir in searched {
            let meta = dir.metadata().map_err(|error| failed(&error))?;
            if let Some(why) = foreign(&meta, true) {
                return Err(refused(format!("the directory {} {why}", dir.display())));
            }
        }
        let dir = Dir::open(place).map_err(|error| failed(&error))?;
        let file = dir.open_file(PROJECT_FILE).map_err(|error| failed(&error))?;
        let meta = file.metadata().map_err(|error| failed(&error))?;
        if let Some(why) = foreign(&meta, false) {
            return Err(refused(format!("it {why}")));
        }
        let mut bytes = Vec::new();
        file.take(MAX_PROJECT_FILE_LEN + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        if bytes.len() as u64 > MAX_PROJECT_FILE_LEN {
            return Err(refused(format!("it has more than {MAX_PROJECT_FILE_LEN} bytes")));
        }
        let sha256 = sha256(&bytes);
        let text = String::from_utf8(bytes).map_err(|_| refused("it is no UTF-8".to_owned()))?;
        Ok(Self { path, text, sha256 })
    }

    /// The one that a user names, by itself or by its directory.
    pub fn named(path: &Path) -> Result<Self, RefusedProject> {
        let refused = |why: String| RefusedProject { path: path.to_owned(), why };
        let dir = match path.file_name() {
            Some(name) if name == PROJECT_FILE && !path.is_dir() => path.parent().unwrap_or(Path::new("/")),
            _ if path.is_dir() => path,
            _ => return Err(refused(format!("it is not called {PROJECT_FILE}"))),
        };
        let dir = dir.canonicalize().map_err(|error| refused(format!("it cannot be found: {error}")))?;
        Self::read(&dir, &[&dir])
    }
}

/// The directories that are searched, the nearest first. `None` where `exists` cannot say.
fn places<'d>(
    dir: &'d Path,
    home: Option<&Path>,
    exists: impl Fn(&Path) -> Option<bool>,
) -> Option<Vec<&'d Path>> {
    let mut places = Vec::new();
    for place in dir.ancestors() {
        places.push(place);
        if home == Some(place) || exists(&place.join(".git"))? {
            return Some(places);
        }
    }
    Some(vec![dir])
}

/// Why a file or a directory may be somebody else's work. Root's directories are no stranger's.
fn foreign(meta: &std::fs::Metadata, directory: bool) -> Option<String> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if meta.uid() != user && !(directory && meta.uid() == 0) {
        return Some(format!("belongs to user {}", meta.uid()));
    }
    if meta.mode() & 0o002 != 0 {
        return Some("can be written by anybody".to_owned());
    }
    // A group of the user's own is what many systems give each user.
    (meta.mode() & 0o020 != 0 && meta.gid() != group)
        .then(|| format!("can be written by group {}", meta.gid()))
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn found(dir: &Path, home: Option<&Path>) -> Option<Result<String, String>> {
        let sure = ProjectFile::is_surely_absent(dir, home);
        let found = ProjectFile::find(dir, home)
            .map(|found| found.map(|file| file.text).map_err(|refused| refused.why));
        assert!(found.is_none() || !sure, "{dir:?} has one");
        let sure = ProjectFile::is_surely_absent(dir, home);
        assert!(found.is_none() || !sure, "{dir:?} has one, and it was looked at");
        found
    }

    #[test]
    fn the_search_ends_with_the_repository_or_the_home() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path();
        fs::create_dir_all(top.join("home/repo/deep/er")).unwrap();
        fs::write(top.join(PROJECT_FILE), "above").unwrap();
        let deep = top.join("home/repo/deep/er");
        let home = top.join("home");
        assert_eq!(found(&deep, Some(&home)), None, "it stands above the home");
        assert_eq!(found(&deep, None), None, "nothing says where the project ends");
        assert_eq!(found(top, None), Some(Ok("above".to_owned())), "the directory itself always counts");
        fs::write(home.join(PROJECT_FILE), "home").unwrap();
        assert_eq!(found(&deep, Some(&home)), Some(Ok("home".to_owned())));
        fs::create_dir(top.join("home/repo/.git")).unwrap();
        assert_eq!(found(&deep, Some(&home)), None, "the repository ends before");
        fs::write(top.join("home/repo").join(PROJECT_FILE), "repo").unwrap();
        assert_eq!(found(&deep, Some(&home)), Some(Ok("repo".to_owned())));
    }

    #[test]
    fn a_file_that_may_be_somebody_elses_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("repo");
        fs::create_dir_all(dir.join(".git")).unwrap();
        fs::create_dir_all(dir.join("in")).unwrap();
        let file = dir.join(PROJECT_FILE);
        let refused = |word: &str| {
            let why = found(&dir.join("in"), None).expect("there is one").expect_err(word);
            assert!(why.contains(word), "{why}");
        };
        fs::write(&file, "").unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        refused("anybody");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(dir.join("in"), fs::Permissions::from_mode(0o757)).unwrap();
        refused("anybody");
        fs::set_permissions(dir.join("in"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found(&dir.join("in"), None), Some(Ok(String::new())));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        refused("anybody");
        fs::write(&file, vec![b'#'; MAX_PROJECT_FILE_LEN as usize + 1]).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        refused("bytes");
        fs::remove_file(&file).unwrap();
        fs::write(dir.join("elsewhere"), "").unwrap();
        symlink("elsewhere", &file).unwrap();
        refused("no regular file");
        fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &file,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        refused("no regular file");
        fs::remove_file(&file).unwrap();
        fs::write(&file, "").unwrap();
        if chown(&file, Some(1234), None).is_ok() {
            refused("belongs to user 1234");
        }
    }

    #[test]
    fn the_hash_is_sha_256() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
