//! Puts directories of an instance apart on a disk that would look past freshly deleted ones.

use std::io;
use std::path::Path;

use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags};

/// Moves the directories that are made in `parent` apart from their neighbours, as the homes of users are.
///
/// ext4 puts each into a part of the disk of its own then. Without a journal it looks past all files that were deleted
/// in the same part in the last minutes for each new one, and the neighbours in a home delete a lot. Only the few
/// directories that sessions are in are made so: finding such a place means looking at every part of the disk.
/// Other file systems know no such thing.
pub(crate) fn with_spread_dirs<T>(parent: &Path, make: impl FnOnce() -> T) -> T {
    let flagged = flag(parent);
    let made = make();
    if let Ok(Some((dir, before))) = flagged {
        // One that keeps the flag is slower, and nothing else.
        let _ = ioctl_setflags(&dir, before);
    }
    made
}

/// Sets the flag, and returns what to put back where it was not set before.
fn flag(parent: &Path) -> io::Result<Option<(std::os::fd::OwnedFd, IFlags)>> {
    let dir = rustix::fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let before = ioctl_getflags(&dir)?;
    if before.contains(IFlags::TOPDIR) {
        return Ok(None);
    }
    ioctl_setflags(&dir, before | IFlags::TOPDIR)?;
    Ok(Some((dir, before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_flagged(dir: &Path) -> Option<bool> {
        Some(ioctl_getflags(std::fs::File::open(dir).unwrap()).ok()?.contains(IFlags::TOPDIR))
    }

    #[test]
    fn the_parent_is_as_it_was_afterwards() {
        let parent = tempfile::tempdir().unwrap();
        let inner = parent.path().join("inner");
        let before = is_flagged(parent.path());
        let meanwhile = with_spread_dirs(parent.path(), || {
            std::fs::create_dir(&inner).unwrap();
            is_flagged(parent.path())
        });
        assert!(inner.is_dir());
        assert_eq!(before, is_flagged(parent.path()));
        // Where the file system takes no such flag, nothing changes.
        assert!(meanwhile == Some(true) || meanwhile == before, "{before:?} {meanwhile:?}");
    }

    #[test]
    fn a_parent_that_is_not_there_is_for_the_maker_to_say() {
        assert_eq!(with_spread_dirs(Path::new("/none/at/all"), || 7), 7);
    }
}
