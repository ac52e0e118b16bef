//! Whose terminal decides a session's size.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use wharf_boundary::Dir;
use wharf_model::Geometry;

/// The file by which those who are attached agree. It is the session's: what is in it holds while it lives.
const FILE: &str = "geometry";

/// Our say in a session's size.
///
/// An owner is whoever has the file's lock, which goes to the next with his end, however he ends. The latest typist is
/// whoever wrote his number into it last.
pub(super) struct Say {
    geometry: Geometry,
    file: Option<File>,
    owns: bool,
}

impl Say {
    /// One who is attached, and may type.
    pub(super) fn new(geometry: Geometry, session: &Path) -> Self {
        // The session can write its directory: what stands there is no link and no pipe, or it is nobody's say.
        let open = || Dir::open(session).and_then(|dir| dir.open_or_make_file(FILE, 0o600)).ok();
        let file = if geometry == Geometry::Fixed { None } else { open() };
        Self { geometry, file, owns: false }
    }

    /// One who only looks.
    pub(super) fn none() -> Self {
        Self { geometry: Geometry::Fixed, file: None, owns: false }
    }

    /// Whether our terminal's size is the session's, as we come or as our size changes. `alone` says whether nobody else
    /// is attached.
    pub(super) fn decides(&mut self, alone: bool) -> bool {
        match self.geometry {
            Geometry::Fixed => false,
            Geometry::Owner => self.own(),
            Geometry::Latest if alone => {
                self.write();
                true
            }
            Geometry::Latest => self.is_ours(),
        }
    }

    /// Whether what we have just typed makes our terminal's size the session's, which it was not before.
    pub(super) fn typed(&mut self) -> bool {
        let takes = self.geometry == Geometry::Latest && !self.is_ours();
        if takes {
            self.write();
        }
        takes
    }

    /// Whether it can become ours without our doing: then it is to be looked at from time to time.
    pub(super) fn waits(&self) -> bool {
        self.geometry == Geometry::Owner && !self.owns && self.file.is_some()
    }

    /// Takes the lock, where it is free. Whether it is ours now and was not before.
    pub(super) fn inherited(&mut self) -> bool {
        self.waits() && self.own()
    }

    fn own(&mut self) -> bool {
        if !self.owns {
            let lock = FlockOperation::NonBlockingLockExclusive;
            // Where there is no file there is nobody to agree with.
            self.owns = self.file.as_ref().is_none_or(|file| flock(file, lock).is_ok());
        }
        self.owns
    }

    fn is_ours(&mut self) -> bool {
        let Some(file) = &mut self.file else { return true };
        let mut number = [0; 4];
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut number));
        read.is_ok() && u32::from_le_bytes(number) == std::process::id()
    }

    fn write(&mut self) {
        if let Some(file) = &mut self.file {
            // Should it fail, the next key tries again.
            let _ =
                file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&std::process::id().to_le_bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_plants_in_its_place_is_neither_written_nor_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (file, victim) = (dir.path().join(FILE), dir.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        let pipe = || rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        let plants: [&dyn Fn(); 3] = [
            &|| std::os::unix::fs::symlink(&victim, &file).unwrap(),
            &|| std::fs::hard_link(&victim, &file).unwrap(),
            &pipe,
        ];
        for plant in plants {
            plant();
            let mut say = Say::new(Geometry::Latest, dir.path());
            assert!(say.decides(true), "whoever is alone decides all the same");
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn a_fixed_size_is_nobodys() {
        let dir = tempfile::tempdir().unwrap();
        let mut say = Say::new(Geometry::Fixed, dir.path());
        assert!(!say.decides(true) && !say.typed() && !say.waits());
        assert!(!Say::none().decides(true));
    }

    #[test]
    fn the_first_owns_it_and_the_next_inherits() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Say::new(Geometry::Owner, dir.path());
        let mut second = Say::new(Geometry::Owner, dir.path());
        assert!(first.decides(true) && !first.waits());
        assert!(!second.decides(true) && !second.typed() && second.waits() && !second.inherited());
        drop(first);
        assert!(second.inherited() && !second.waits() && second.decides(false));
    }

    #[test]
    fn the_latest_typist_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut ours = Say::new(Geometry::Latest, dir.path());
        assert!(!ours.decides(false), "a second one who has not typed has no say");
        assert!(ours.decides(true) && !ours.typed());
        // Somebody else types.
        std::fs::write(dir.path().join(FILE), 1_u32.to_le_bytes()).unwrap();
        assert!(!ours.decides(false));
        assert!(ours.typed() && !ours.typed() && ours.decides(false));
    }
}
