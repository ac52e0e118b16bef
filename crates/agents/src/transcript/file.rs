use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use super::TranscriptRules;
use crate::line::Lines;
use crate::{Told, shape};

/// So much is read of a file at once.
const PIECE: u64 = 4 << 20;
/// A file that was there before is read from this far before its end.
const TAIL: u64 = 1 << 20;
/// So much is read of a list; the newest entries stand at its end.
const LIST: u64 = 8 << 20;
/// So many entries are remembered, to tell one that is written again.
const ENTRIES: usize = 256;

/// One file of a conversation, and how far it was read.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) path: PathBuf,
    offset: u64,
    lines: Lines,
    /// Whether the first line is the end of one that began before the tail.
    partial: bool,
    /// Whether it belongs to this session's directory; nothing, as long as no line has said.
    ours: Option<bool>,
    /// Facts that wait for that to be known.
    waiting: Vec<Told>,
    seen: VecDeque<String>,
    list: Vec<String>,
    /// The length and time of a list that was read.
    stamp: Option<(u64, Option<SystemTime>)>,
    /// The conversation that its lines name.
    pub(super) id: Option<String>,
}

impl Followed {
    /// Follows a file: from its start when it is new, else from what was written lately.
    pub(super) fn new(
        path: PathBuf,
        rules: &TranscriptRules,
        new: bool,
        dir: &[PathBuf],
        since: SystemTime,
    ) -> Self {
        let length = std::fs::metadata(&path).map_or(0, |about| about.len());
        let lately = modified(&path).is_some_and(|time| time >= since);
        let offset = match (new, lately) {
            (true, _) => 0,
            // Lines that say when they were written can be told from older ones.
            (false, true) if rules.time.is_some() => length.saturating_sub(TAIL),
            (false, _) => length,
        };
        let mut file = Self {
            ours: belongs(&path, rules, dir),
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
            file.list = file.whole();
        }
        file
    }

    /// The facts that were written since.
    pub(super) fn poll(&mut self, rules: &TranscriptRules, dir: &[PathBuf], since: SystemTime) -> Vec<Told> {
        if self.ours == Some(false) {
            return Vec::new();
        }
        let lines = if rules.list { self.added() } else { self.appended() };
        let mut told = Vec::new();
        for line in lines {
            let Ok(json) = serde_json::from_str::<Value>(&line) else { continue };
            told.extend(self.read(&json, rules, dir, since));
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
                self.waiting.truncate(ENTRIES);
                Vec::new()
            }
        }
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
        if let Some(id) = text(&rules.id) {
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
        let mark = format!("{entry} {} {}", told.kind, told.data);
        if self.seen.contains(&mark) {
            return false;
        }
        if self.seen.len() == ENTRIES {
            self.seen.pop_front();
        }
        self.seen.push_back(mark);
        true
    }

    fn appended(&mut self) -> Vec<String> {
        let Ok(mut file) = File::open(&self.path) else { return Vec::new() };
        let length = file.metadata().map_or(0, |about| about.len());
        if length < self.offset {
            // Written anew: what stands there now was not there when it was read last.
            self.offset = 0;
            self.lines = Lines::default();
            self.partial = false;
        }
        if length == self.offset || file.seek(SeekFrom::Start(self.offset)).is_err() {
            return Vec::new();
        }
        let mut bytes = Vec::new();
        let Ok(read) = file.take(PIECE).read_to_end(&mut bytes) else { return Vec::new() };
        self.offset += read as u64;
        let mut lines = self.lines.feed(&bytes);
        if self.partial && !lines.is_empty() {
            lines.remove(0);
            self.partial = false;
        }
        lines.into_iter().map(|line| line.text).collect()
    }

    /// The entries at the end of a list that were not there before.
    fn added(&mut self) -> Vec<String> {
        let length = std::fs::metadata(&self.path).map_or(0, |about| about.len());
        let stamp = Some((length, modified(&self.path)));
        if self.stamp == stamp {
            return Vec::new();
        }
        self.stamp = stamp;
        let lines = self.whole();
        // The list has lost its first entries, and got new ones at its end.
        let kept = (0..=self.list.len())
            .map(|lost| &self.list[lost..])
            .find(|kept| lines.starts_with(kept))
            .map_or(0, <[String]>::len);
        let added = lines[kept..].to_vec();
        self.list = lines;
        added
    }

    fn whole(&self) -> Vec<String> {
        let mut bytes = Vec::new();
        let Ok(file) = File::open(&self.path) else { return Vec::new() };
        if file.take(LIST).read_to_end(&mut bytes).is_err() {
            return Vec::new();
        }
        // A last line without an end is still being written.
        Lines::default().feed(&bytes).into_iter().map(|line| line.text).collect()
    }
}

/// Whether a file belongs to a directory, as far as it can be told without its lines.
fn belongs(path: &Path, rules: &TranscriptRules, dir: &[PathBuf]) -> Option<bool> {
    let Some(file) = &rules.dir_file else { return rules.dir.is_none().then_some(true) };
    let place = path.parent()?.join(file);
    match std::fs::read_to_string(place) {
        Ok(named) => Some(dir.iter().any(|dir| dir == Path::new(named.trim_end()))),
        Err(_) => Some(true),
    }
}

pub(super) fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|about| about.modified()).ok()
}
