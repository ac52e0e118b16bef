//! Our own files, where something else may stand in their place: that is put aside, and said.

use std::fmt;
use std::fs::File;
use std::io;

use crate::dir::Dir;
use crate::file::is_hostile;

/// What stood in the place of one of our files, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// The file's name.
    pub name: String,
    /// The name that what stood there has now.
    pub now: String,
    /// What was wrong with it.
    pub why: String,
}

impl fmt::Display for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was put aside as {}: {}", self.name, self.now, self.why)
    }
}

impl Dir {
    /// One of our own files for appending, or a new one. What is no file of ours is put aside first.
    pub fn append_own(&self, name: &str, mode: u32) -> io::Result<(File, Option<Aside>)> {
        self.or_put_aside(name, |dir| dir.append_file(name, mode))
    }

    /// One of our own files for reading and writing, or a new one. What is no file of ours is put aside first.
    pub fn open_own(&self, name: &str, mode: u32) -> io::Result<(File, Option<Aside>)> {
        self.or_put_aside(name, |dir| dir.open_or_make_file(name, mode))
    }

    /// Tries something with a name. Where something hostile stands there it is put aside, and tried once more.
    fn or_put_aside<T>(
        &self,
        name: &str,
        attempt: impl Fn(&Self) -> io::Result<T>,
    ) -> io::Result<(T, Option<Aside>)> {
        match attempt(self) {
            Err(error) if is_hostile(&error) => {
                let now = self.put_aside(name)?.unwrap_or_default();
                Ok((attempt(self)?, Some(Aside { name: name.to_owned(), now, why: error.to_string() })))
            }
            opened => Ok((opened?, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn whatever_stands_in_the_place_of_a_file_of_ours_is_put_aside_untouched() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let precious = home.path().join("precious");
        let ours = home.path().join("ours");
        let ways: [&dyn Fn(); 4] = [
            &|| symlink(&precious, &ours).unwrap(),
            &|| fs::hard_link(&precious, &ours).unwrap(),
            &|| fs::create_dir(&ours).unwrap(),
            &|| rustix::fs::mkfifoat(rustix::fs::CWD, &ours, rustix::fs::Mode::RWXU).unwrap(),
        ];
        for (number, plant) in ways.into_iter().enumerate() {
            fs::write(&precious, "p").unwrap();
            plant();
            let (mut file, aside) = dir.append_own("ours", 0o600).unwrap();
            file.write_all(b"line").unwrap();
            let aside = aside.unwrap();
            assert_eq!(aside.now, format!("ours.aside.{number}"), "{aside}");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "p", "{aside}");
            assert_eq!(fs::read_to_string(&ours).unwrap(), "line", "{aside}");
            // The next one finds ours.
            assert_eq!(dir.open_own("ours", 0o600).unwrap().1, None);
            fs::remove_file(&ours).unwrap();
        }
    }
}
