//! A view of the files in which all but what may be changed is read-only, and what is nobody's business is not there.
//!
//! Landlock knows nothing of modes, owners and times: by itself it would let a command change those of any file that
//! is the user's. A read-only mount does not. Nor can it take away what is below something that it has given.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use wharf_model::Text;

use super::mounts::{attach, clone_tree, mount_new, mount_private, set_read_only};
use super::own_devices;
use crate::Rules;

/// Makes the view, in a mount namespace of our own.
pub(super) fn close(rules: &Rules) -> io::Result<()> {
    let here = std::env::current_dir()?;
    let writable = outermost(rules.write.iter().map(Text::as_path));
    let hidden = real(rules.guarded.hidden.iter());
    let fixed = fixed(rules, &writable)?;
    mount_private()?;
    // Taken before the rest is closed, so that they stay as they are.
    let open = copies(&writable)?;
    let temporary = copies(&real(rules.temporary.iter().map(Text::as_path)))?;
    set_read_only(Path::new("/"), true)?;
    let read = real(rules.read.iter().map(Text::as_path));
    let own = copies(&read.into_iter().filter(|path| is_below(path, &hidden)).collect::<Vec<_>>())?;
    let settings = copies(&fixed)?;
    put(&open)?;
    for path in hidden.iter().chain(&fixed) {
        anchor(path, &writable)?;
    }
    let own: Vec<(PathBuf, OwnedFd)> = own.into_iter().chain(temporary).collect();
    for dir in &hidden {
        hide(dir, own.iter().map(|(path, _)| path.as_path()))?;
    }
    put(&own)?;
    put(&settings)?;
    own_devices::make()?;
    // The old way here leads to what is read-only now.
    std::env::set_current_dir(here)
}

/// What of Wharf's own the rules would give, were there no view: then there is no sandbox.
pub(super) fn exposed(rules: &Rules) -> Option<PathBuf> {
    let writable: Vec<PathBuf> = real(rules.write.iter().map(Text::as_path));
    let readable = real(rules.read.iter().map(Text::as_path));
    let covers = |given: &[PathBuf], path: &PathBuf| given.iter().any(|given| path.starts_with(given));
    let hidden = real(rules.guarded.hidden.iter());
    let read = hidden.into_iter().find(|path| covers(&writable, path) || covers(&readable, path));
    // One that is not there yet could be made.
    read.or_else(|| rules.guarded.fixed.iter().find(|path| covers(&writable, path)).cloned())
}

/// The directories that cannot be changed and lie in what can. One that is not there is made, or it would be made for us.
fn fixed(rules: &Rules, writable: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let below: Vec<&PathBuf> = rules.guarded.fixed.iter().filter(|path| is_below(path, writable)).collect();
    for path in &below {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    }
    // By a link on the way it may be elsewhere, and in reach all the same.
    let all = real(rules.guarded.fixed.iter());
    Ok(all.into_iter().filter(|path| is_below(path, writable)).collect())
}

fn is_below(path: &Path, trees: &[PathBuf]) -> bool {
    trees.iter().any(|tree| path.starts_with(tree))
}

/// Where paths really lead; those that lead nowhere are left out.
fn real<P: AsRef<Path>>(paths: impl Iterator<Item = P>) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> = paths.filter_map(|path| path.as_ref().canonicalize().ok()).collect();
    real.sort();
    real.dedup();
    real
}

/// The paths that are below no other of them: what is one tree stays one, and files move freely in it.
fn outermost<P: AsRef<Path>>(paths: impl Iterator<Item = P>) -> Vec<PathBuf> {
    let real = real(paths);
    let covers = |a: &Path, b: &Path| a != b && b.starts_with(a);
    real.iter().filter(|path| !real.iter().any(|other| covers(other, path))).cloned().collect()
}

fn copies(paths: &[PathBuf]) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    paths.iter().map(|path| Ok((path.clone(), clone_tree(path)?))).collect()
}

fn put(copies: &[(PathBuf, OwnedFd)]) -> io::Result<()> {
    copies.iter().try_for_each(|(path, tree)| attach(tree, path))
}

/// Keeps the directories on the way to a path, from what can be changed on, where they are: what is mounted cannot be
/// renamed. Else another could be put in the place of one, with what the user's next command would believe.
fn anchor(path: &Path, writable: &[PathBuf]) -> io::Result<()> {
    let Some(tree) = writable.iter().find(|tree| path.starts_with(tree)) else { return Ok(()) };
    let mut between: Vec<&Path> = path.ancestors().skip(1).take_while(|dir| *dir != tree.as_path()).collect();
    between.reverse();
    between.into_iter().try_for_each(|dir| attach(&clone_tree(dir)?, dir))
}

/// Puts an empty directory over one, with places for what of it is the session's own.
fn hide<'a>(dir: &Path, own: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    let own: Vec<(&Path, bool)> =
        own.filter(|path| path.starts_with(dir)).map(|path| (path, path.is_dir())).collect();
    mount_new(c"tmpfs", dir, libc::MS_NOSUID | libc::MS_NODEV, c"mode=0700,size=64k")?;
    for (path, is_dir) in own {
        let parent = if is_dir { path } else { path.parent().unwrap_or(path) };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        if !is_dir {
            std::fs::File::create(path)?;
        }
    }
    set_read_only(dir, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tree_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["a/b", "ab"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let paths = ["a/b", "a", "ab", "a/../a", "missing"].map(|name| root.join(name));
        assert_eq!(outermost(paths.iter()), [root.join("a"), root.join("ab")]);
    }
}
