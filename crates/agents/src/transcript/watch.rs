use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::file::{Followed, modified};
use super::find;
use crate::{Lookup, Profile, Told, place};

/// So many files are followed at once: one is the conversation, the others are doubtful.
const MOST: usize = 32;
/// How often new files are looked for, before and after one was found.
const SEARCH: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// Follows what an agent writes on disk about its conversation.
#[derive(Debug)]
pub struct Transcript {
    profile: Arc<Profile>,
    patterns: Vec<String>,
    /// The session's directory, as given and without links: agents write either.
    dir: Vec<PathBuf>,
    since: SystemTime,
    conversation: Option<String>,
    files: Vec<Followed>,
    /// What was there before and has not been written since.
    old: HashSet<PathBuf>,
    searched: Option<Instant>,
}

impl Transcript {
    /// Follows the conversations of an agent that runs in this directory. What was written before `since` is left out.
    /// Nothing, where the profile knows of no files, or a variable that it needs is not set.
    pub fn watch(
        profile: &Arc<Profile>,
        lookup: &Lookup<'_>,
        dir: &Path,
        conversation: Option<&str>,
        since: SystemTime,
    ) -> Option<Self> {
        let rules = profile.transcript.as_ref()?;
        let patterns: Vec<String> =
            rules.files.iter().filter_map(|file| place::expanded(file, lookup)).collect();
        if patterns.is_empty() {
            return None;
        }
        let mut places = vec![dir.to_owned()];
        places.extend(dir.canonicalize().ok().filter(|real| real != dir));
        let mut transcript = Self {
            profile: Arc::clone(profile),
            patterns,
            dir: places,
            since,
            conversation: conversation.map(str::to_owned),
            files: Vec::new(),
            old: HashSet::new(),
            searched: None,
        };
        transcript.search(false);
        Some(transcript)
    }

    /// Follows this conversation alone from now on: a hook or the agent itself named it.
    pub fn bind(&mut self, conversation: &str) {
        if self.conversation.as_deref() == Some(conversation) {
            return;
        }
        self.conversation = Some(conversation.to_owned());
        self.files.retain(|file| file.id.as_deref().is_none_or(|id| id == conversation));
        self.searched = None;
    }

    /// The conversation that is followed, where it is known.
    pub fn conversation(&self) -> Option<&str> {
        let told = || match self.files.as_slice() {
            [one] => one.id.as_deref(),
            _ => None,
        };
        self.conversation.as_deref().or_else(told)
    }

    /// What was written since the last call. It reads only what is new, and a bounded part of that.
    pub fn poll(&mut self) -> Vec<Told> {
        let pause = SEARCH[usize::from(!self.files.is_empty())];
        if self.searched.is_none_or(|last| last.elapsed() >= pause) {
            self.search(true);
        }
        let Some(rules) = &self.profile.transcript else { return Vec::new() };
        let mut told = Vec::new();
        for file in &mut self.files {
            told.extend(file.poll(rules, &self.dir, self.since));
        }
        told
    }

    fn search(&mut self, new: bool) {
        self.searched = Some(Instant::now());
        let Some(rules) = &self.profile.transcript else { return };
        let id = self.conversation.as_deref().unwrap_or("*");
        for pattern in &self.patterns {
            for path in find::files(&pattern.replace("{id}", id)) {
                if self.files.len() >= MOST || self.files.iter().any(|file| file.path == path) {
                    continue;
                }
                let lately = rules.list || modified(&path).is_some_and(|time| time >= self.since);
                if !lately {
                    // It may be written to later, when an old conversation goes on.
                    self.old.insert(path);
                    continue;
                }
                let fresh = new && !self.old.contains(&path);
                self.files.push(Followed::new(path, rules, fresh, &self.dir, self.since));
            }
        }
    }
}
