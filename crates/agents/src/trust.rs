//! The projects' files that the user has accepted, by their path and their bytes.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wharf_boundary::Dir;
use wharf_model::{Failure, Millis, TrustedFile};

use crate::ProjectFile;

/// The list, in the instance's own directory: no session in a sandbox or a container can write there.
const LIST: &str = "trusted.json";

/// How many files are trusted at a time; the oldest goes.
const MAX_TRUSTED: usize = 256;

/// The list may be this long: each file is in it, for the next diff.
const MAX_LIST_LEN: u64 = 64 << 20;

/// What the user trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    files: Vec<Accepted>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Accepted {
    #[serde(flatten)]
    file: TrustedFile,
    /// What stood in it.
    text: String,
}

impl Trust {
    /// Reads the list of an instance, whose directory this is. No list trusts nothing.
    pub fn read(state: &Path) -> Result<Self, Failure> {
        let failed = |error: &io::Error| Failure::system("cannot read the list of trusted files", error);
        let read = Dir::open(state).and_then(|dir| dir.read(LIST, MAX_LIST_LEN));
        match read {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(&io::Error::other(error))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Writes it, for the user alone to read.
    pub fn write(&self, state: &Path) -> Result<(), Failure> {
        let failed = |error: &io::Error| Failure::system("cannot write the list of trusted files", error);
        let bytes = serde_json::to_vec(self).map_err(|error| failed(&io::Error::other(error)))?;
        Dir::open(state).and_then(|dir| dir.replace(LIST, &bytes, 0o600)).map_err(|error| failed(&error))
    }

    /// Whether exactly these bytes in exactly this place were accepted.
    pub fn accepts(&self, file: &ProjectFile) -> bool {
        self.of(&file.path).is_some_and(|accepted| accepted.file.sha256 == file.sha256)
    }

    /// What stood in a file when it was accepted.
    pub fn text(&self, path: &Path) -> Option<&str> {
        self.of(path).map(|accepted| accepted.text.as_str())
    }

    /// Accepts a file, in the place of what was accepted of it before.
    pub fn accept(&mut self, file: &ProjectFile, at: Millis) {
        self.revoke(&file.path);
        if self.files.len() >= MAX_TRUSTED {
            self.files.remove(0);
        }
        self.files.push(Accepted {
            file: TrustedFile { file: file.path.clone().into(), sha256: file.sha256.clone(), at },
            text: file.text.clone(),
        });
    }

    /// Trusts a file no longer; whether it was trusted.
    pub fn revoke(&mut self, path: &Path) -> bool {
        let before = self.files.len();
        self.files.retain(|accepted| accepted.file.file.as_path() != path);
        self.files.len() < before
    }

    /// All that are trusted, those that were accepted first before the others.
    pub fn files(&self) -> impl Iterator<Item = &TrustedFile> {
        self.files.iter().map(|accepted| &accepted.file)
    }

    fn of(&self, path: &Path) -> Option<&Accepted> {
        self.files.iter().find(|accepted| accepted.file.file.as_path() == path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn trust_is_in_a_place_and_in_bytes() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(Trust::read(state.path()).unwrap(), Trust::default());
        let file = |path: &str, sha256: &str| ProjectFile {
            path: path.into(),
            text: format!("text of {sha256}"),
            sha256: sha256.to_owned(),
        };
        let mut trust = Trust::default();
        trust.accept(&file("/a/wharf.toml", "1"), Millis(1));
        trust.write(state.path()).unwrap();
        let mode = state.path().join(LIST).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut trust = Trust::read(state.path()).unwrap();
        assert!(trust.accepts(&file("/a/wharf.toml", "1")));
        assert!(!trust.accepts(&file("/a/wharf.toml", "2")) && !trust.accepts(&file("/b/wharf.toml", "1")));
        trust.accept(&file("/a/wharf.toml", "2"), Millis(2));
        assert!(!trust.accepts(&file("/a/wharf.toml", "1")) && trust.accepts(&file("/a/wharf.toml", "2")));
        assert_eq!(trust.text(Path::new("/a/wharf.toml")), Some("text of 2"));
        assert!(trust.revoke(Path::new("/a/wharf.toml")) && !trust.revoke(Path::new("/a/wharf.toml")));
        for n in 0..2 * MAX_TRUSTED {
            trust.accept(&file(&format!("/{n}/wharf.toml"), "1"), Millis(3));
        }
        assert_eq!(trust.files().count(), MAX_TRUSTED);
    }

    #[test]
    fn a_list_that_is_none_trusts_nothing() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(LIST), "{").unwrap();
        assert!(Trust::read(state.path()).is_err());
        std::fs::remove_file(state.path().join(LIST)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", state.path().join(LIST)).unwrap();
        assert!(Trust::read(state.path()).is_err());
    }
}
