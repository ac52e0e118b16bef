//! What git has of a flake's directory.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use wharf_backend::Progress;

use crate::program::{Around, answer};

/// A flake's directory in a git work tree that has all of the flake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    /// The work tree.
    pub(crate) root: PathBuf,
    /// The flake's directory below it.
    pub(crate) below: PathBuf,
    /// The flake's own files there, from the root on.
    pub(crate) files: Vec<PathBuf>,
}

impl Tree {
    /// The tree that has this flake. None where there is no git, no tree, or where git does not know some file that
    /// nix would then not see: such a flake is read as the directory that it is.
    pub(crate) async fn of(dir: &Path, around: Around<'_>) -> Option<Self> {
        if !dir.ancestors().any(|dir| dir.join(".git").exists()) {
            return None;
        }
        let root = git(dir, around, &["rev-parse", "--show-toplevel"]).await?;
        let root = PathBuf::from(OsString::from_vec(root.strip_suffix(b"\n")?.to_vec()));
        let below = dir.strip_prefix(&root).ok()?.to_owned();
        let nix = ["--", "*.nix", "flake.lock", "**/flake.lock"];
        let unknown = git(&root, around, &[&["ls-files", "-z", "--others"], &nix[..]].concat()).await?;
        if !unknown.is_empty() {
            return None;
        }
        let known = git(&root, around, &[&["ls-files", "-z", "--cached"], &nix[..]].concat()).await?;
        let files: Vec<PathBuf> = known
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| root.join(OsStr::from_bytes(name)))
            .collect();
        files.contains(&dir.join("flake.nix")).then_some(Self { root, below, files })
    }
}

async fn git(dir: &Path, around: Around<'_>, args: &[&str]) -> Option<Vec<u8>> {
    let mut command = around.command(Path::new("git"));
    // Nothing of a surrounding git command may say where this one looks.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
    command.current_dir(dir).args(args);
    answer(command, &Progress::default()).await.ok()
}
