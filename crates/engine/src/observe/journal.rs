//! Appends and reads lines of JSON in a file, and survives a crash in the middle of a line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wharf_boundary::{Dir, is_hostile};
use wharf_model::Failure;

use crate::Result;

/// The longest line that is read: more than any that is written. A longer one is left out, and is not held in memory.
const MAX_LINE_LEN: u64 = 64 << 20;

/// How much is read at once of a journal that is read from its end.
const BLOCK_LEN: usize = 64 << 10;

/// Lines of JSON in a file that only grows. What a crash cut off in the middle of a line never was.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    /// How much of it outlives a power cut.
    synced: u64,
}

impl Journal {
    /// Opens a journal, or begins one, and reads what it holds. A line that cannot be read is left out; what is no file
    /// of ours is put aside.
    pub(crate) fn open<T: DeserializeOwned>(path: &Path) -> Result<(Self, Vec<T>)> {
        let named = |error| Failure::system(format!("cannot use {}", path.display()), &error);
        let (dir, name) = place(path).map_err(named)?;
        let (mut file, aside) = dir.append_own(name, 0o600).map_err(named)?;
        if let Some(aside) = aside {
            tracing::warn!(path = %path.display(), "{aside}");
        }
        let mut lines = Vec::new();
        let length = each_line(&mut file, 0, u64::MAX, |line| match serde_json::from_slice(line) {
            Ok(entry) => lines.push(entry),
            Err(error) => tracing::warn!(path = %path.display(), %error, "a line is left out"),
        })
        .map_err(named)?;
        let mut journal = Self { path: path.to_owned(), file, length, synced: 0 };
        journal.cut().map_err(named)?;
        Ok((journal, lines))
    }

    /// Opens a journal, or begins one, and reads its last line alone: what it holds may be much, and is its session's.
    pub(crate) fn open_at_end<T: DeserializeOwned>(path: &Path) -> Result<(Self, Option<T>)> {
        let named = |error| Failure::system(format!("cannot use {}", path.display()), &error);
        let (dir, name) = place(path).map_err(named)?;
        let (mut file, aside) = dir.append_own(name, 0o600).map_err(named)?;
        if let Some(aside) = aside {
            tracing::warn!(path = %path.display(), "{aside}");
        }
        let (length, last) = last_line(&mut file).map_err(named)?;
        let last = match last.map(|line| serde_json::from_slice(&line)) {
            // One that cannot be read is left out, as everywhere: the one before it is the last.
            Some(Err(_)) => return Self::open(path).map(|(journal, mut lines)| (journal, lines.pop())),
            Some(Ok(last)) => Some(last),
            None => None,
        };
        let mut journal = Self { path: path.to_owned(), file, length, synced: 0 };
        journal.cut().map_err(named)?;
        Ok((journal, last))
    }

    /// Reads all of a journal.
    #[cfg(test)]
    pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
        Self::read_some(path, 0, u64::MAX).map(|(lines, _)| lines)
    }

    /// Reads lines from a place on, about that many bytes of them, and where the next one begins. The file may not be
    /// there; what is no file of ours says nothing.
    pub(crate) fn read_some<T: DeserializeOwned>(
        path: &Path,
        from: u64,
        about: u64,
    ) -> Result<(Vec<T>, u64)> {
        let mut lines = Vec::new();
        let mut file = match place(path).and_then(|(dir, name)| dir.open_file(name)) {
            Ok(file) => file,
            Err(error) if is_hostile(&error) => {
                tracing::warn!(path = %path.display(), %error, "it is passed over");
                return Ok((lines, from));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((lines, from)),
            Err(error) => return Err(Failure::system(format!("cannot read {}", path.display()), &error)),
        };
        let end = each_line(&mut file, from, about, |line| lines.extend(serde_json::from_slice(line).ok()))
            .map_err(|error| Failure::system(format!("cannot read {}", path.display()), &error))?;
        Ok((lines, end))
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
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|error| self.failed(&error))?;
        self.synced = self.length;
        Ok(())
    }

    /// Whether all of it outlives a power cut.
    #[cfg(test)]
    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.length
    }

    /// How long it is, in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Puts other lines in the place of all that are there, or leaves it as it was.
    pub(crate) fn replace<T: Serialize>(&mut self, entries: &[T]) -> Result<()> {
        let failed = |error| self.failed(&error);
        let (dir, name) = place(&self.path).map_err(failed)?;
        let new = format!("{name}.new");
        // One that a crash left would be appended to.
        dir.remove_tree(&new).map_err(failed)?;
        let (mut journal, _) = Self::open::<serde::de::IgnoredAny>(&self.path.with_file_name(&new))?;
        for entry in entries {
            journal.append(entry)?;
        }
        journal.sync()?;
        dir.rename(&new, &dir, name).map_err(failed)?;
        (self.file, self.length, self.synced) = (journal.file, journal.length, journal.synced);
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

/// The directory of a journal, held, and the journal's name in it.
pub(super) fn place(path: &Path) -> std::io::Result<(Dir, &str)> {
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(dir), Some(name)) => Ok((Dir::open(dir)?, name)),
        _ => Err(std::io::ErrorKind::InvalidInput.into()),
    }
}

/// Calls for each whole line from a place on, until about that many bytes were read; returns where the last of them ends.
fn each_line(file: &mut File, from: u64, about: u64, mut line: impl FnMut(&[u8])) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let (mut reader, mut length, mut buffer) = (BufReader::new(file), from, Vec::new());
    loop {
        if length - from >= about {
            return Ok(length);
        }
        buffer.clear();
        let read = reader.by_ref().take(MAX_LINE_LEN).read_until(b'\n', &mut buffer)?;
        if buffer.last() == Some(&b'\n') {
            length += read as u64;
            line(&buffer[..read - 1]);
            continue;
        }
        if (read as u64) < MAX_LINE_LEN {
            return Ok(length);
        }
        let Some(rest) = skip_line(&mut reader)? else { return Ok(length) };
        length += read as u64 + rest;
        tracing::warn!("a line of {} bytes is left out", read as u64 + rest);
        buffer = Vec::new();
    }
}

/// Where the last whole line of a file ends, and that line, found from the end.
fn last_line(file: &mut File) -> std::io::Result<(u64, Option<Vec<u8>>)> {
    let (mut end, mut begin) = (None, file.metadata()?.len());
    let mut line: Vec<u8> = Vec::new();
    let mut block = vec![0; BLOCK_LEN];
    while begin > 0 {
        let count = begin.min(BLOCK_LEN as u64);
        begin -= count;
        let block = &mut block[..count as usize];
        file.read_exact_at(block, begin)?;
        let mut rest = &*block;
        if end.is_none() {
            let Some(at) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
            end = Some(begin + at as u64 + 1);
            rest = &rest[..at];
        }
        let before = rest.iter().rposition(|byte| *byte == b'\n');
        // From the back: turned round once, at the end.
        line.extend(rest[before.map_or(0, |at| at + 1)..].iter().rev());
        if before.is_some() || line.len() as u64 > MAX_LINE_LEN {
            break;
        }
    }
    line.reverse();
    Ok((end.unwrap_or_default(), end.map(|_| line)))
}

/// Passes over the rest of a line. How long it was; none where the file ends within it.
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<Option<u64>> {
    let mut length = 0;
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let count = end.unwrap_or(bytes.len());
        length += count as u64;
        reader.consume(count);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            assert_eq!(Journal::open_at_end::<u32>(&path).unwrap().1, whole.last().copied());
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
        assert_eq!(Journal::open_at_end::<u32>(&path).unwrap().1, Some(3));
        fs::write(&path, "1\n2\nnonsense\nhal").unwrap();
        assert_eq!(Journal::open_at_end::<u32>(&path).unwrap().1, Some(2), "the last that can be read");
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\nnonsense\n", "what was cut off is gone");
    }

    #[test]
    fn the_last_line_is_found_whatever_its_length_and_the_rest_can_be_read_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        for length in [0, 1, BLOCK_LEN - 3, BLOCK_LEN - 2, BLOCK_LEN - 1, BLOCK_LEN, 3 * BLOCK_LEN + 1] {
            let long = "x".repeat(length);
            for before in [&[][..], &["a"], &["a", "b"]] {
                let _ = fs::remove_file(&path);
                let (mut journal, _) = Journal::open::<String>(&path).unwrap();
                let all = [before, &[long.as_str()]].concat();
                for line in &all {
                    journal.append(line).unwrap();
                }
                let (again, last) = Journal::open_at_end::<String>(&path).unwrap();
                assert_eq!((again.length(), last.as_deref()), (journal.length(), Some(long.as_str())));
                let (mut pieces, mut from) = (Vec::new(), 0);
                while from < journal.length() {
                    let (lines, next) = Journal::read_some::<String>(&path, from, 1).unwrap();
                    assert_eq!(lines.len(), 1);
                    pieces.extend(lines);
                    from = next;
                }
                assert_eq!(pieces, all);
            }
        }
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
