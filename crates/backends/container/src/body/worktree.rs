//! Git worktrees: their files are in one directory, and what makes them a repository is in another.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository that the worktree in a directory belongs to: its `.git`, which the worktree needs beside itself. None
/// where the directory is no worktree, or a whole repository.
pub(crate) fn repository(dir: &Path) -> Option<PathBuf> {
    let link = fs::read_to_string(dir.join(".git")).ok()?;
    let own = dir.join(link.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(own.join("commondir")).ok()?;
    let common = own.join(common.trim()).canonicalize().ok()?;
    // Anything can stand in a file; only a repository is let in.
    (common.join("HEAD").is_file() && common.join("objects").is_dir()).then_some(common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_is_found_and_a_claim_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (git, tree) = (root.join("repo/.git"), root.join("tree"));
        for made in [git.join("worktrees/tree"), git.join("objects"), tree.clone(), root.join("liar/x")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("worktrees/tree/commondir"), "../..\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", git.join("worktrees/tree").display())).unwrap();
        assert_eq!(repository(&tree), Some(git));
        assert_eq!(repository(&root.join("repo")), None);
        fs::write(root.join("liar/.git"), format!("gitdir: {}\n", root.join("liar/x").display())).unwrap();
        fs::write(root.join("liar/x/commondir"), "/etc\n").unwrap();
        assert_eq!(repository(&root.join("liar")), None);
    }
}
