//! Unpacks a tar stream into a held directory without ever writing outside of it.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tar::{Archive, Entry, EntryType};
use wharf_boundary::Dir;
use wharf_model::{Code, Failure};

use crate::beneath::{self, Beneath};
use crate::budget::{Budget, Budgeted};
use crate::fault::{escape, fault};
use crate::names::Renaming;
use crate::{EntryNames, Moved};

/// Modes that are kept. Who may run a file as somebody else is not for an archive to say.
const MODE_MASK: u32 = 0o777;
/// How much of a file is moved at once.
const CHUNK_LEN: usize = 64 << 10;

/// Makes files of an archive in a directory that is held; `shown` is what failures call it. Everything belongs to whoever calls this. `tell` hears
/// how many bytes went in, again and again.
///
/// After a failure what was unpacked before stays.
pub fn unpack(
    archive: impl Read,
    dir: Dir,
    shown: &Path,
    names: EntryNames,
    tell: impl FnMut(u64),
) -> Result<Moved, Failure> {
    let budget = Budget::default();
    budget.header();
    let mut archive = Archive::new(Budgeted { reader: archive, budget: budget.clone() });
    let mut unpacking = Unpacking {
        beneath: Beneath::new(dir),
        dir: shown,
        names: Renaming::new(names),
        directories: Vec::new(),
        moved: Moved::default(),
        tell,
    };
    for entry in archive.entries().map_err(|error| broken(&error))? {
        let entry = entry.map_err(|error| broken(&error))?;
        budget.data();
        unpacking.entry(entry)?;
        budget.header();
    }
    unpacking.finish()
}

fn broken(error: &io::Error) -> Failure {
    Failure::new(Code::Invalid, format!("the archive cannot be read: {error}"))
}

struct Unpacking<'a, F> {
    beneath: Beneath,
    dir: &'a Path,
    names: Renaming,
    /// Directories and what they get at the end: one that cannot be written to must first be filled.
    directories: Vec<(PathBuf, u32, u64)>,
    moved: Moved,
    tell: F,
}

impl<F: FnMut(u64)> Unpacking<'_, F> {
    fn entry<R: Read>(&mut self, mut entry: Entry<'_, R>) -> Result<(), Failure> {
        let name = entry.path().map_err(|error| broken(&error))?.into_owned();
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader) {
            return Ok(());
        }
        let path = self.names.place(&name)?;
        let header = entry.header();
        let mode = header.mode().map_err(|error| broken(&error))? & MODE_MASK;
        let modified = header.mtime().unwrap_or(0);
        if path.as_os_str().is_empty() {
            if kind != EntryType::Directory {
                return Err(Failure::new(Code::Invalid, format!("{} is not a directory", name.display())));
            }
            return Ok(());
        }
        let made = match kind {
            EntryType::Directory => self.directory(&path, mode, modified),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let size = entry.size();
                self.file(&path, &mut entry.by_ref().take(size), mode, modified).and_then(|got| {
                    // Half a file must not be taken for a whole one.
                    if got == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
                })
            }
            EntryType::Symlink => {
                let target = target(&entry)?;
                self.beneath.spot(&path).and_then(|spot| spot.make_link(&target))
            }
            EntryType::Link => {
                let existing = self.names.place(&target(&entry)?)?;
                self.beneath.hard_link(&existing, &path)
            }
            _ => {
                self.moved.left_out += 1;
                return Ok(());
            }
        };
        made.map_err(|error| self.cannot(&path, &error))?;
        self.moved.entries += 1;
        Ok(())
    }

    fn directory(&mut self, path: &Path, mode: u32, modified: u64) -> io::Result<()> {
        self.beneath.spot(path)?.make_dir()?;
        self.directories.push((path.to_owned(), mode, modified));
        Ok(())
    }

    /// Makes a file. Returns how much of it came.
    fn file(&mut self, path: &Path, data: &mut impl Read, mode: u32, modified: u64) -> io::Result<u64> {
        let mut file = self.beneath.spot(path)?.make_file()?;
        let (mut buffer, before) = (vec![0; CHUNK_LEN], self.moved.bytes);
        loop {
            let got = match data.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            file.write_all(&buffer[..got])?;
            self.moved.bytes += got as u64;
            (self.tell)(self.moved.bytes);
        }
        beneath::finish(&file, mode, modified)?;
        Ok(self.moved.bytes - before)
    }

    fn finish(mut self) -> Result<Moved, Failure> {
        while let Some((path, mode, modified)) = self.directories.pop() {
            match self.beneath.finish(&path, mode, modified) {
                Ok(()) => {}
                // One that was there before as a link keeps what it has.
                Err(error) if beneath::is_escape(&error) => {}
                Err(error) => return Err(self.cannot(&path, &error)),
            }
        }
        Ok(self.moved)
    }

    fn cannot(&self, path: &Path, error: &io::Error) -> Failure {
        if beneath::is_escape(error) {
            return escape(path.display());
        }
        let whole = self.dir.join(path);
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Failure::new(Code::Invalid, format!("the archive breaks off within {}", path.display()))
            }
            io::ErrorKind::IsADirectory => Failure::new(
                Code::Invalid,
                format!("{} is a directory, and would be replaced by a file", whole.display()),
            ),
            io::ErrorKind::NotADirectory => Failure::new(
                Code::Invalid,
                format!("{} is a file, and would be replaced by a directory", whole.display()),
            ),
            _ => fault(format!("cannot write {}", whole.display()), error),
        }
    }
}

fn target<R: Read>(entry: &Entry<'_, R>) -> Result<PathBuf, Failure> {
    let target = entry.link_name().map_err(|error| broken(&error))?;
    target.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        Failure::new(Code::Invalid, "the archive cannot be read: a link in it points to nothing")
    })
}
