//! The user's own configuration files. His directory is trusted, so a link of his is followed (many keep such files elsewhere);
//! what it leads to must be a regular file of a sensible size, and nothing is waited for.

use std::io;
use std::path::Path;

use crate::dir::Dir;

/// The largest configuration file that is read.
pub const MAX_CONFIG_LEN: u64 = 1 << 20;

/// Reads one. None is the same as an empty place; anything but a readable text file of at most [`MAX_CONFIG_LEN`] bytes is an
/// error.
pub fn read_config(path: &Path) -> io::Result<Option<String>> {
    let there = match path.canonicalize() {
        Ok(there) => there,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let (Some(dir), Some(name)) = (there.parent(), there.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let bytes = match Dir::open(dir)?.read(name, MAX_CONFIG_LEN) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_regular_file_is_read_and_nothing_else_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        assert_eq!(read_config(&at("none")).unwrap(), None);
        assert_eq!(read_config(&at("none/below")).unwrap(), None);
        fs::write(at("file"), "text").unwrap();
        assert_eq!(read_config(&at("file/below")).unwrap(), None);
        assert_eq!(read_config(&at("file")).unwrap().as_deref(), Some("text"));
        symlink("file", at("link")).unwrap();
        assert_eq!(read_config(&at("link")).unwrap().as_deref(), Some("text"));
        symlink("nowhere", at("dangling")).unwrap();
        assert_eq!(read_config(&at("dangling")).unwrap(), None);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink("fifo", at("to-fifo")).unwrap();
        symlink("/dev/zero", at("to-device")).unwrap();
        symlink("circle", at("circle")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        fs::File::create(at("huge")).unwrap().set_len(MAX_CONFIG_LEN + 1).unwrap();
        fs::write(at("bytes"), [0xff]).unwrap();
        for name in ["fifo", "to-fifo", "to-device", "circle", "dir", "huge", "bytes"] {
            assert!(read_config(&at(name)).is_err(), "{name}");
        }
    }
}
