//! The conversations of an agent, found and followed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use wharf_boundary::Dir;

use super::file::Followed;
use super::find;
use crate::{Lookup, Profile, Told, place};

/// So many files are followed at once: one is the conversation, the others are doubtful.
const MAX_FOLLOWED: usize = 32;
/// So many files are remembered that were there before.
const MAX_OLD: usize = 50_000;
/// So many bytes of unfinished lines are kept, of all files together.
const MAX_PENDING_LEN: usize = 32 << 20;
/// How often new files are looked for, before and after one was found.
const SEARCH_INTERVALS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// Follows what an agent writes on disk about its conversation.
#[derive(Debug)]
pub struct AgentTranscript {
    profile: Arc<Profile>,
    patterns: Vec<Pattern>,
    /// The session's directory, as given and without links: agents write either.
    dir: Vec<PathBuf>,
    since: SystemTime,
    conversation: Option<String>,
    /// The files, each with the number of its pattern.
    files: Vec<(usize, Followed)>,
    /// What was there before and has not been written since.
    old: HashSet<(usize, PathBuf)>,
    searched: Option<Instant>,
}

/// Files of an agent: its directory, and the parts of a pattern below that.
#[derive(Debug)]
struct Pattern {
    dir: PathBuf,
    parts: Vec<String>,
}

impl AgentTranscript {
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
        let pattern = |file: &String| place::below(file, lookup).map(|(dir, parts)| Pattern { dir, parts });
        let patterns: Vec<Pattern> = rules.files.iter().filter_map(pattern).collect();
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
        self.files.retain(|(_, file)| file.id.as_deref().is_none_or(|id| id == conversation));
        self.searched = None;
    }

    /// The conversation that is followed, where it is known.
    pub fn conversation(&self) -> Option<&str> {
        let told = || match self.files.as_slice() {
            [(_, one)] => one.id.as_deref(),
            _ => None,
        };
        self.conversation.as_deref().or_else(told)
    }

    /// What was written since the last call. It reads only what is new, and a bounded part of that.
    pub fn poll(&mut self) -> Vec<Told> {
        let pause = SEARCH_INTERVALS[usize::from(!self.files.is_empty())];
        if self.searched.is_none_or(|last| last.elapsed() >= pause) {
            self.search(true);
        }
        let Some(rules) = &self.profile.transcript else { return Vec::new() };
        let tops: Vec<Option<Dir>> =
            self.patterns.iter().map(|pattern| Dir::open(&pattern.dir).ok()).collect();
        let (mut told, mut pending) = (Vec::new(), 0);
        for (pattern, file) in &mut self.files {
            let Some(top) = &tops[*pattern] else { continue };
            told.extend(file.poll(top, rules, &self.dir, self.since));
            pending += file.pending();
            if pending > MAX_PENDING_LEN {
                pending -= file.pending();
                file.skip_line();
            }
        }
        told
    }

    fn search(&mut self, new: bool) {
        self.searched = Some(Instant::now());
        let Some(rules) = &self.profile.transcript else { return };
        let id = self.conversation.as_deref();
        if id.is_some_and(|id| !find::is_id(id)) {
            // No file has such a name.
            return;
        }
        for (number, pattern) in self.patterns.iter().enumerate() {
            // By its path each time: the agent may make it later, or anew.
            let Ok(top) = Dir::open(&pattern.dir) else { continue };
            let parts: Vec<String> =
                pattern.parts.iter().map(|part| part.replace("{id}", id.unwrap_or("*"))).collect();
            for found in find::files(&top, &parts) {
                let known = |(of, file): &(usize, Followed)| *of == number && file.path == found.path;
                if self.files.len() >= MAX_FOLLOWED || self.files.iter().any(known) {
                    continue;
                }
                let key = (number, found.path);
                if !rules.list && found.modified < self.since {
                    // It may be written to later, when an old conversation goes on.
                    if self.old.len() < MAX_OLD {
                        self.old.insert(key);
                    }
                    continue;
                }
                let fresh = new && !self.old.contains(&key);
                let file = Followed::new(&top, key.1, rules, fresh, &self.dir, self.since);
                self.files.push((number, file));
            }
        }
    }
}
