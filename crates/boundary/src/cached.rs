//! What the kernel knows of a path without asking any disk, network or program: a look that never waits.

use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::platform::{open_cached, path_of};

/// Whether something stands at a path, a link included. `None` where the kernel would have to ask somebody, who may never answer.
pub fn exists(path: &Path) -> Option<bool> {
    match open_cached(path, OFlags::NOFOLLOW) {
        Ok(_) => Some(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Some(false),
        Err(_) => None,
    }
}

/// The path of a directory without links. `None` as above, and where there is none.
pub fn canonical(path: &Path) -> Option<PathBuf> {
    let dir = open_cached(path, OFlags::DIRECTORY).ok()?;
    let canonical = std::fs::read_link(path_of(&dir)).ok()?;
    // One that was removed, or is beyond our root, has no path.
    (canonical.is_absolute() && exists(&canonical) == Some(true)).then_some(canonical)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_was_looked_at_before_is_known_and_what_is_not_is_never_guessed() {
        let dir = tempfile::tempdir().unwrap();
        let (there, absent) = (dir.path().join("there"), dir.path().join("absent"));
        std::fs::create_dir(&there).unwrap();
        symlink("there", dir.path().join("link")).unwrap();
        // Looked at once, so that the kernel may know; some file systems have it forget at once.
        let _ = (there.metadata(), absent.metadata(), dir.path().join("link").metadata());
        assert_ne!(exists(&there), Some(false));
        assert_ne!(exists(&absent), Some(true));
        // Where the kernel can look so at all, it does; whoever mounts or renames meanwhile makes it unsure for a moment.
        let (own, link) = (there.canonicalize().unwrap(), dir.path().join("link"));
        if exists(Path::new("/")).is_some() {
            let deadline = Instant::now() + Duration::from_secs(20);
            let found = loop {
                let _ = link.metadata();
                match canonical(&link) {
                    None if Instant::now() < deadline => std::thread::yield_now(),
                    found => break found,
                }
            };
            assert_eq!(found, Some(own));
        }
        assert_eq!(canonical(&absent), None);
        std::fs::write(&absent, "").unwrap();
        assert_ne!(exists(&absent), Some(false), "what is known is not what was known");
        assert_eq!(canonical(&absent), None, "a file is no directory");
    }
}
