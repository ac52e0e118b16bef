//! Taking a tree away, however deep it is and whoever changes it meanwhile.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::dir::{Dir, single};
use crate::platform::path_of;

/// How many directories deep a walk holds descriptors; below that, directories are moved up first.
const MAX_HELD_DEPTH: usize = 64;

/// How often an entry that keeps coming back is taken away.
const MAX_REMOVE_TRIES: u32 = 100;

impl Dir {
    /// Takes away a name and all below it. Links go themselves, not what they point to. Depth costs neither stack nor
    /// descriptors: a tree that is deeper than we hold is moved up, piece by piece.
    pub fn remove_tree(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let name = single(name.as_ref())?;
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        for _ in 0..MAX_REMOVE_TRIES {
            match self.dir(name) {
                Ok(top) => top.empty()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            }
            match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // Somebody put something there meanwhile.
                Err(Errno::NOTEMPTY) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, format!("{} fills again", name.display())))
    }

    /// Takes away everything in the directory, by one walk that holds at most `MAX_HELD_DEPTH` directories. It takes this
    /// one and no duplicate of it: a daemon that is short of descriptors gets some back by removing a session.
    fn empty(self) -> io::Result<()> {
        // Each level: its directory, and the names in it that were directories when it was listed.
        let mut levels = vec![Level::of(self)?];
        let mut moved = 0_u64;
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.directories.pop() else {
                let done = levels.pop().expect("there was a last one");
                if let (Some(parent), Some(name)) = (levels.last(), done.name) {
                    unlink_dir(&parent.dir, &name)?;
                }
                continue;
            };
            let below = match level.dir.dir(&name) {
                Ok(below) => below,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // It is no directory any more.
                Err(_) => {
                    level.dir.remove(&name)?;
                    continue;
                }
            };
            if levels.len() < MAX_HELD_DEPTH {
                levels.push(Level { name: Some(name), ..Level::of(below)? });
                continue;
            }
            // Too deep to go down: what is below moves up to the top, where it waits for its turn.
            drop(below);
            let up = loop {
                let up = format!(".moved-up-{moved}");
                moved += 1;
                let (top, from) = (&levels[0].dir, &levels.last().expect("it is not empty").dir);
                match rustix::fs::renameat_with(
                    &from.fd,
                    &name,
                    &top.fd,
                    &up,
                    rustix::fs::RenameFlags::NOREPLACE,
                ) {
                    Ok(()) => break Some(up),
                    Err(Errno::EXIST) => {}
                    Err(Errno::NOENT) => break None,
                    Err(error) => return Err(error.into()),
                }
            };
            levels[0].directories.extend(up.map(Into::into));
        }
        Ok(())
    }
}

/// A directory on the way down.
struct Level {
    dir: Dir,
    name: Option<std::ffi::OsString>,
    directories: Vec<std::ffi::OsString>,
}

impl Level {
    /// Lists a directory, and takes away all in it that is none itself.
    fn of(dir: Dir) -> io::Result<Self> {
        let mut directories = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&dir.fd)?.st_mode);
        if !mode.contains(Mode::RWXU) {
            // Its owner took rights away: to list it, to pass through it, to take something out. They may be ours to give
            // back, by the descriptor: whoever may not pass through a directory cannot name it by a path in it.
            let this = path_of(&dir.fd);
            let _ = rustix::fs::chmod(this, Mode::RWXU);
        }
        let readable = dir.resolve(Path::new("."), flags, Mode::empty())?;
        for entry in rustix::fs::Dir::new(readable)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match rustix::fs::unlinkat(&dir.fd, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    use std::os::unix::ffi::OsStrExt;
                    directories.push(std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { dir, name: None, directories })
    }
}

fn unlink_dir(parent: &Dir, name: &std::ffi::OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(&parent.fd, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_goes_and_what_it_points_to_stays() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("precious"), "p").unwrap();
        fs::create_dir_all(home.path().join("kept/a")).unwrap();
        fs::create_dir_all(home.path().join("tree/a/b")).unwrap();
        fs::write(home.path().join("tree/a/file"), "").unwrap();
        symlink("../../kept", home.path().join("tree/a/link")).unwrap();
        symlink("../../precious", home.path().join("tree/a/b/link")).unwrap();
        let dir = Dir::open(home.path()).unwrap();
        dir.remove_tree("tree").unwrap();
        dir.remove_tree("nothing").unwrap();
        assert!(!home.path().join("tree").exists());
        assert!(home.path().join("kept/a").exists() && home.path().join("precious").exists());
    }

    #[test]
    fn fifteen_thousand_directories_in_each_other_go() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let mut at = dir.make_dir("tree", 0o700).unwrap();
        for _ in 0..15_000 {
            at = at.make_dir("d", 0o700).unwrap();
            at.make_file("f", 0o600).unwrap();
        }
        drop(at);
        dir.remove_tree("tree").unwrap();
        assert_eq!(dir.names(10).unwrap(), Vec::<std::ffi::OsString>::new());
    }

    /// Rights say nothing to root: this is a test for an ordinary user.
    #[test]
    fn a_directory_that_nobody_may_list_or_change_goes() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        for mode in [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600] {
            let closed = home.path().join("tree/closed");
            fs::create_dir_all(closed.join("below")).unwrap();
            fs::write(closed.join("file"), "").unwrap();
            for path in [closed, home.path().join("tree")] {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
            dir.remove_tree("tree").unwrap_or_else(|error| panic!("{mode:o}: {error}"));
            assert!(!home.path().join("tree").exists());
        }
    }
}
