use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wharf_model::Failure;

use crate::Result;

/// Lines of JSON in a file that only grows. What a crash cut off in the middle of a line never was.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Journal {
    /// Opens a journal, or begins one, and reads what it holds. A line that cannot be read is left out.
    pub(crate) fn open<T: DeserializeOwned>(path: &Path) -> Result<(Self, Vec<T>)> {
        let named = |error| Failure::system(format!("cannot use {}", path.display()), &error);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path).map_err(named)?;
        let mut lines = Vec::new();
        let length = each_line(&mut file, |line| match serde_json::from_slice(line) {
            Ok(entry) => lines.push(entry),
            Err(error) => tracing::warn!(path = %path.display(), %error, "a line is left out"),
        })
        .map_err(named)?;
        let mut journal = Self { path: path.to_owned(), file, length };
        journal.cut().map_err(named)?;
        Ok((journal, lines))
    }

    /// Reads a journal that may not be there.
    pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
        let mut lines = Vec::new();
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(lines),
            Err(error) => return Err(Failure::system(format!("cannot read {}", path.display()), &error)),
        };
        each_line(&mut file, |line| lines.extend(serde_json::from_slice(line).ok()))
            .map_err(|error| Failure::system(format!("cannot read {}", path.display()), &error))?;
        Ok(lines)
    }

    /// Adds a line, or nothing at all.
    pub(crate) fn append(&mut self, entry: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(entry).map_err(|error| self.failed(&error.into()))?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Half a line would take the next one with it.
            let _ = self.cut();
            return Err(self.failed(&error));
        }
        self.length += line.len() as u64;
        Ok(())
    }

    /// Waits until everything is on the disk itself, so that it outlives a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| self.failed(&error))
    }

    /// How long it is, in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Puts other lines in the place of all that are there, or leaves it as it was.
    pub(crate) fn replace<T: Serialize>(&mut self, entries: &[T]) -> Result<()> {
        let new = self.path.with_extension("new");
        // One that a crash left would be appended to.
        let _ = fs::remove_file(&new);
        let (mut journal, _) = Self::open::<serde::de::IgnoredAny>(&new)?;
        for entry in entries {
            journal.append(entry)?;
        }
        journal.sync()?;
        fs::rename(&new, &self.path).map_err(|error| self.failed(&error))?;
        (self.file, self.length) = (journal.file, journal.length);
        Ok(())
    }

    fn cut(&mut self) -> std::io::Result<()> {
        if self.file.metadata()?.len() > self.length {
            self.file.set_len(self.length)?;
        }
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::system(format!("cannot write {}", self.path.display()), error)
    }
}

/// Calls for each whole line; returns where the last of them ends.
fn each_line(file: &mut File, mut line: impl FnMut(&[u8])) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let (mut reader, mut length, mut buffer) = (BufReader::new(file), 0, Vec::new());
    loop {
        buffer.clear();
        let read = reader.read_until(b'\n', &mut buffer)?;
        if buffer.pop() != Some(b'\n') {
            return Ok(length);
        }
        length += read as u64;
        line(&buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_off_never_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        assert_eq!(Journal::read::<u32>(&path).unwrap(), [0; 0]);
        let (mut journal, old) = Journal::open::<u32>(&path).unwrap();
        assert!(old.is_empty());
        for number in [1, 2, 3] {
            journal.append(&number).unwrap();
        }
        drop(journal);
        for cut in (0..6).rev() {
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..cut]).unwrap();
            let whole: Vec<u32> = (1..=cut as u32 / 2).collect();
            assert_eq!(Journal::read::<u32>(&path).unwrap(), whole);
            let (mut journal, lines) = Journal::open::<u32>(&path).unwrap();
            assert_eq!(lines, whole);
            journal.append(&9).unwrap();
            assert_eq!(Journal::read::<u32>(&path).unwrap(), [whole, vec![9]].concat());
        }
    }

    #[test]
    fn a_bad_line_takes_no_other_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        fs::write(&path, "1\nnonsense\n3\n").unwrap();
        assert_eq!(Journal::open::<u32>(&path).unwrap().1, [1, 3]);
    }

    #[test]
    fn other_lines_take_the_place_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut journal, _) = Journal::open::<u32>(&path).unwrap();
        journal.append(&1).unwrap();
        journal.replace(&[7, 8]).unwrap();
        journal.append(&9).unwrap();
        assert_eq!(journal.length(), 6);
        assert_eq!(Journal::read::<u32>(&path).unwrap(), [7, 8, 9]);
    }
}
