//! Packs a tree by descriptors: no path is resolved twice, so a directory that is swapped for a link leads nowhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use tar::{Builder, EntryType, Header};
use wharf_boundary::Dir;
use wharf_model::Failure;

use crate::Moved;
use crate::fault::fault;
use crate::source::{PackSource, look, read_link};

/// The most names in one directory. They are in memory, and whoever writes there must not have it all.
const MAX_NAMES: usize = 1 << 20;
/// The most directories that wait to be walked, for the same reason.
const MAX_WAITING_DIRECTORIES: usize = 1 << 20;

/// How a tree is packed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// Whose everything is said to be, as user and group; whose it is when absent.
    pub owner: Option<(u32, u32)>,
}

/// Writes a file, or a directory with all that is below it, as an archive in which all names begin with `name`; with
/// an empty one, only what is in the directory. Links in a directory are packed as what
/// they are. `tell` hears how many bytes of files went in, again and again.
pub fn pack<W: Write>(
    archive: W,
    source: &PackSource,
    name: &OsStr,
    how: How,
    tell: impl FnMut(u64),
) -> Result<Moved, Failure> {
    let mut packing =
        Packing { archive: Builder::new(archive), moved: Moved::default(), owner: how.owner, tell };
    packing.first(source, Path::new(name)).map_err(|(path, error)| {
        fault(format!("cannot pack {}", source.path().join(path).display()), &error)
    })?;
    let done = packing.archive.into_inner().and_then(|mut archive| archive.flush());
    done.map_err(|error| fault("cannot end the archive", &error))?;
    Ok(packing.moved)
}

struct Packing<W: Write, F> {
    archive: Builder<W>,
    moved: Moved,
    owner: Option<(u32, u32)>,
    tell: F,
}

/// Why something below the source cannot be packed, and where it is.
type PackError = (PathBuf, io::Error);

impl<W: Write, F: FnMut(u64)> Packing<W, F> {
    fn first(&mut self, source: &PackSource, name: &Path) -> Result<(), PackError> {
        let here = |error: io::Error| (PathBuf::new(), error);
        let stat = source.stat().map_err(here)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.tree(&source.dir().map_err(here)?, name, &stat),
            FileType::RegularFile => {
                source.file().and_then(|file| self.file(file, name, &stat)).map_err(here)
            }
            FileType::Symlink => {
                source.target().and_then(|target| self.link(&target, name, &stat)).map_err(here)
            }
            _ => {
                self.moved.left_out += 1;
                Ok(())
            }
        }
    }

    /// A directory and all below it. Depth by a list: a tree may be deeper than a stack is. Each directory is opened
    /// from the first one, without links on the way, and one is open at a time.
    fn tree(&mut self, root: &Dir, name: &Path, stat: &Stat) -> Result<(), PackError> {
        if !name.as_os_str().is_empty() {
            self.directory(name, stat).map_err(|error| (PathBuf::new(), error))?;
        }
        let mut waiting = vec![PathBuf::new()];
        while let Some(below) = waiting.pop() {
            let opened = if below.as_os_str().is_empty() { root.try_clone() } else { root.dir(&below) };
            let dir = match opened {
                // It went meanwhile, or something else has its name by now.
                Err(error) if !below.as_os_str().is_empty() && is_no_directory_now(&error) => continue,
                opened => opened.map_err(|error| (below.clone(), error))?,
            };
            let mut names = dir.names(MAX_NAMES).map_err(|error| (below.clone(), error))?;
            names.sort();
            let mut directories = Vec::new();
            for entry in names {
                let path = below.join(&entry);
                let is_directory = self
                    .entry(&dir, Path::new(&entry), &name.join(&path))
                    .map_err(|error| (path.clone(), error))?;
                if is_directory {
                    directories.push(path);
                }
            }
            if waiting.len() + directories.len() > MAX_WAITING_DIRECTORIES {
                let what = format!("more than {MAX_WAITING_DIRECTORIES} directories");
                return Err((below, io::Error::new(io::ErrorKind::FileTooLarge, what)));
            }
            waiting.extend(directories.into_iter().rev());
        }
        Ok(())
    }

    /// One entry of a directory. Whether it is a directory itself, and is still to be walked.
    fn entry(&mut self, dir: &Dir, entry: &Path, name: &Path) -> io::Result<bool> {
        let Some(stat) = look(dir, entry)? else { return Ok(false) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                self.directory(name, &stat)?;
                return Ok(true);
            }
            FileType::Symlink => match read_link(dir, entry) {
                Ok(target) => self.link(&target, name, &stat)?,
                // It is no link any more.
                Err(error) if is_something_else_now(&error) => self.moved.left_out += 1,
                Err(error) => return Err(error),
            },
            FileType::RegularFile => match dir.open_file(entry) {
                Ok(file) => self.file(file, name, &stat)?,
                Err(error) if is_something_else_now(&error) => self.moved.left_out += 1,
                Err(error) => return Err(error),
            },
            _ => self.moved.left_out += 1,
        }
        Ok(false)
    }

    fn header(&self, kind: EntryType, stat: &Stat) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(wharf_boundary::mode_of(stat) & 0o7777);
        let (user, group) = self.owner.unwrap_or((stat.st_uid, stat.st_gid));
        header.set_uid(u64::from(user));
        header.set_gid(u64::from(group));
        header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
        header.set_size(0);
        header
    }

    fn directory(&mut self, name: &Path, stat: &Stat) -> io::Result<()> {
        let mut header = self.header(EntryType::Directory, stat);
        self.archive.append_data(&mut header, name, io::empty())?;
        self.moved.entries += 1;
        Ok(())
    }

    fn link(&mut self, target: &Path, name: &Path, stat: &Stat) -> io::Result<()> {
        let mut header = self.header(EntryType::Symlink, stat);
        self.archive.append_link(&mut header, name, target)?;
        self.moved.entries += 1;
        Ok(())
    }

    fn file(&mut self, file: File, name: &Path, stat: &Stat) -> io::Result<()> {
        let meta = file.metadata()?;
        if !meta.is_file() {
            self.moved.left_out += 1;
            return Ok(());
        }
        let size = meta.len();
        let mut header = self.header(EntryType::Regular, stat);
        header.set_size(size);
        // A file that changes under our eyes still has the size that was said.
        let data = file.take(size).chain(io::repeat(0)).take(size);
        let (before, tell) = (self.moved.bytes, &mut self.tell);
        let mut done = before;
        let counted = Counted {
            reader: data,
            tell: |got| {
                done += got;
                tell(done);
            },
        };
        self.archive.append_data(&mut header, name, counted)?;
        self.moved.bytes = before + size;
        self.moved.entries += 1;
        Ok(())
    }
}

/// Whether a name stands for something else than it did when it was looked at.
fn is_something_else_now(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotFound};
    matches!(error.kind(), NotFound | InvalidInput) || wharf_boundary::is_hostile(error)
}

/// The same of a directory.
fn is_no_directory_now(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory || is_something_else_now(error)
}

struct Counted<R, F> {
    reader: R,
    tell: F,
}

impl<R: Read, F: FnMut(u64)> Read for Counted<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.reader.read(buffer)?;
        (self.tell)(got as u64);
        Ok(got)
    }
}
