//! One file of a conversation, followed as it grows.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use wharf_boundary::Dir;

use super::{TranscriptRules, find};
use crate::line::Lines;
use crate::{Told, shape};

/// So much is read of a file before its lines are dealt with.
const PIECE_LEN: u64 = 256 << 10;
/// So many pieces are read of a file at once.
const MAX_PIECES: usize = 16;
/// A file that was there before is read from this far before its end.
const TAIL_LEN: u64 = 1 << 20;
/// So much is read of a list; the newest entries stand at its end.
const MAX_LIST_LEN: u64 = 8 << 20;
/// So many entries of a list are compared with those that were there before.
const MAX_LIST_ENTRIES: usize = 1_000;
/// So many entries are remembered, to tell one that is written again.
const MAX_SEEN: usize = 256;
/// So many facts wait until a line says whose file it is, and of no longer lines than this.
const MAX_WAITING: usize = 64;
const MAX_WAITING_LINE_LEN: usize = 64 << 10;
/// The longest file that names a directory.
const MAX_DIR_FILE_LEN: u64 = 8 << 10;

/// One file of a conversation, and how far it was read.
#[derive(Debug)]
pub(super) struct Followed {
    /// Where it is below the agent's directory.
    pub(super) path: PathBuf,
    offset: u64,
    lines: Lines,
    /// Whether the first line is the end of one that began before the tail.
    partial: bool,
    /// Whether it belongs to this session's directory; nothing, as long as no line has said.
    ours: Option<bool>,
    /// Facts that wait for that to be known.
    waiting: Vec<Told>,
    /// Digests of facts that were told: the facts themselves may be long.
    seen: VecDeque<u64>,
    list: Vec<String>,
    /// The length and time of a list that was read.
    stamp: Option<(u64, SystemTime)>,
    /// The conversation that its lines name.
    pub(super) id: Option<String>,
}

impl Followed {
    /// Follows a file below a directory: from its start when it is new, else from what was written lately.
    pub(super) fn new(
        top: &Dir,
        path: PathBuf,
        rules: &TranscriptRules,
        new: bool,
        dir: &[PathBuf],
        since: SystemTime,
    ) -> Self {
        let (length, modified) = top.file_stamp(&path).unwrap_or((0, SystemTime::UNIX_EPOCH));
        let lately = modified >= since;
        let offset = match (new, lately) {
            (true, _) => 0,
            // Lines that say when they were written can be told from older ones.
            (false, true) if rules.time.is_some() => length.saturating_sub(TAIL_LEN),
            (false, _) => length,
        };
        let mut file = Self {
            ours: belongs(top, &path, rules, dir),
            path,
            offset,
            lines: Lines::default(),
            partial: offset > 0 && offset < length,
            waiting: Vec::new(),
            seen: VecDeque::new(),
            list: Vec::new(),
            stamp: None,
            id: None,
        };
        if rules.list && !new {
            file.list = file.whole(top);
        }
        file
    }

    /// The facts that were written since.
    pub(super) fn poll(
        &mut self,
        top: &Dir,
        rules: &TranscriptRules,
        dir: &[PathBuf],
        since: SystemTime,
    ) -> Vec<Told> {
        let mut told = Vec::new();
        for _ in 0..MAX_PIECES {
            if self.ours == Some(false) {
                break;
            }
            let lines = if rules.list { self.added(top) } else { self.appended(top) };
            // What cannot be read now may be readable the next time.
            let Ok(Some(lines)) = lines else { break };
            for line in lines {
                let Ok(json) = serde_json::from_str::<Value>(&line) else { continue };
                let facts = self.read(&json, rules, dir, since);
                if self.ours.is_some() || line.len() <= MAX_WAITING_LINE_LEN {
                    told.extend(facts);
                }
            }
        }
        match self.ours {
            Some(true) => {
                let mut all = std::mem::take(&mut self.waiting);
                all.append(&mut told);
                all
            }
            Some(false) => {
                self.waiting = Vec::new();
                Vec::new()
            }
            None => {
                self.waiting.append(&mut told);
                self.waiting.truncate(MAX_WAITING);
                Vec::new()
            }
        }
    }

    /// How many bytes of an unfinished line are kept.
    pub(super) fn pending(&self) -> usize {
        self.lines.pending()
    }

    /// Leaves out the line that is being written.
    pub(super) fn skip_line(&mut self) {
        self.lines = Lines::default();
        self.partial = true;
    }

    fn read(
        &mut self,
        json: &Value,
        rules: &TranscriptRules,
        dir: &[PathBuf],
        since: SystemTime,
    ) -> Vec<Told> {
        let text = |paths: &Option<crate::Paths>| {
            paths
                .as_ref()
                .and_then(|paths| paths.take(json, json))
                .and_then(|value| value.as_str().map(str::to_owned))
        };
        if self.ours.is_none()
            && let Some(place) = text(&rules.dir)
        {
            self.ours = Some(dir.iter().any(|dir| dir == Path::new(&place)));
        }
        if let Some(id) = text(&rules.id).filter(|id| find::is_id(id)) {
            self.id = Some(id);
        }
        if text(&rules.time).and_then(|time| time.parse::<jiff::Timestamp>().ok()).is_some_and(|time| {
            // Whole milliseconds are written, so a line of this very millisecond may seem older.
            SystemTime::from(time) + std::time::Duration::from_millis(1) < since
        }) {
            return Vec::new();
        }
        let told = shape::read_all(&rules.line, json);
        match text(&rules.entry) {
            Some(entry) if !told.is_empty() => {
                told.into_iter().filter(|told| self.is_new(&entry, told)).collect()
            }
            _ => told,
        }
    }

    /// Whether this fact of this entry was not told before.
    fn is_new(&mut self, entry: &str, told: &Told) -> bool {
        let mut hasher = DefaultHasher::new();
        (entry, &told.kind, told.data.to_string()).hash(&mut hasher);
        let mark = hasher.finish();
        if self.seen.contains(&mark) {
            return false;
        }
        if self.seen.len() == MAX_SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(mark);
        true
    }

    /// The lines that the next piece completes; none where there is no more to read.
    fn appended(&mut self, top: &Dir) -> io::Result<Option<Vec<String>>> {
        let mut file = top.open_file(&self.path)?;
        let length = file.metadata()?.len();
        if length < self.offset {
            // Written anew: what stands there now was not there when it was read last.
            self.offset = 0;
            self.lines = Lines::default();
            self.partial = false;
        }
        if length == self.offset {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        let read = file.take(PIECE_LEN).read_to_end(&mut bytes)?;
        self.offset += read as u64;
        let mut lines = self.lines.feed(&bytes);
        if self.partial && !lines.is_empty() {
            lines.remove(0);
            self.partial = false;
        }
        Ok((read > 0).then(|| lines.into_iter().map(|line| line.text).collect()))
    }

    /// The entries at the end of a list that were not there before; none where it did not change.
    fn added(&mut self, top: &Dir) -> io::Result<Option<Vec<String>>> {
        let stamp = Some(top.file_stamp(&self.path)?);
        if self.stamp == stamp {
            return Ok(None);
        }
        self.stamp = stamp;
        let lines = self.whole(top);
        // The list has lost its first entries, and got new ones at its end.
        let kept = (0..=self.list.len())
            .map(|lost| &self.list[lost..])
            .find(|kept| lines.starts_with(kept))
            .map_or(0, <[String]>::len);
        let added = lines[kept..].to_vec();
        self.list = lines;
        Ok(Some(added))
    }

    /// The newest entries of a list.
    fn whole(&self, top: &Dir) -> Vec<String> {
        let read = || -> io::Result<(bool, Vec<u8>)> {
            let mut file = top.open_file(&self.path)?;
            let start = file.metadata()?.len().saturating_sub(MAX_LIST_LEN);
            file.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            file.take(MAX_LIST_LEN).read_to_end(&mut bytes)?;
            Ok((start > 0, bytes))
        };
        let Ok((partial, bytes)) = read() else { return Vec::new() };
        // A last line without an end is still being written.
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let mut newest: VecDeque<&[u8]> =
            bytes[..end].rsplit(|byte| *byte == b'\n').take(MAX_LIST_ENTRIES).collect();
        if partial && newest.len() < MAX_LIST_ENTRIES {
            newest.pop_back();
        }
        let mut lines = Lines::default();
        newest
            .iter()
            .rev()
            .filter_map(|line| {
                lines.feed(line);
                lines.feed(b"\n").pop()
            })
            .map(|line| line.text)
            .collect()
    }
}

/// Whether a file belongs to a directory, as far as it can be told without its lines.
fn belongs(top: &Dir, path: &Path, rules: &TranscriptRules, dir: &[PathBuf]) -> Option<bool> {
    let Some(file) = &rules.dir_file else { return rules.dir.is_none().then_some(true) };
    let named = match beside(path, file) {
        Some(place) => top.read(place, MAX_DIR_FILE_LEN),
        None => return Some(true),
    };
    match named {
        Ok(named) => {
            let named = String::from_utf8_lossy(&named);
            Some(dir.iter().any(|dir| dir == Path::new(named.trim_end())))
        }
        Err(error) => Some(error.kind() == io::ErrorKind::NotFound),
    }
}

/// A file from where another stands; none where that leads out of the agent's directory. There are no links on the way.
fn beside(path: &Path, file: &str) -> Option<PathBuf> {
    let mut place = path.parent()?.to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::CurDir => {}
            Component::ParentDir if place.pop() => {}
            _ => return None,
        }
    }
    Some(place)
}
