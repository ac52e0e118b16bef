//! What befalls the command and does not end it: it is stopped by a signal, or something of it is killed for want of memory.

use std::time::{Duration, Instant};

use super::holder::{Holder, MEMORY_TOKEN};
use crate::linux::events::Interest;
use crate::linux::memory::MemoryNews;
use crate::linux::{children, proc};

/// How often it is looked whether a command is stopped that is not our child: no signal tells us.
const FOREIGN_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often the counters of kills are read where nothing tells of them.
const OOM_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How often they are read after memory ran out: the kill comes a moment later.
const OOM_RECHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How long they are read that often.
const OOM_RECHECK_DURATION: Duration = Duration::from_secs(2);

/// What is known of that, and when to look again.
#[derive(Default)]
pub(super) struct Trouble {
    /// Whether the command is stopped.
    pub(super) suspended: bool,
    /// How often something was killed for want of memory.
    pub(super) oom_kills: u64,
    news: Vec<MemoryNews>,
    /// Whether there are counters that nothing tells of.
    untold: bool,
    look: Option<Instant>,
    /// Until when the counters are looked at often.
    hurry: Option<Instant>,
}

impl Holder {
    /// Watches what tells of it. Called once, before the loop.
    pub(super) fn watch_for_trouble(&mut self) {
        for dir in self.tree.group.memory_dirs() {
            let watched = MemoryNews::of(&dir).filter(|news| {
                let added = if news.is_urgent() {
                    self.events.add_urgent(news, MEMORY_TOKEN)
                } else {
                    self.events.add(news, MEMORY_TOKEN, Interest::READ)
                };
                added.is_ok()
            });
            self.trouble.untold |= watched.is_none();
            self.trouble.news.extend(watched);
        }
        self.look_for_trouble(true);
    }

    /// Something was told of memory.
    pub(super) fn on_memory(&mut self) {
        let now = Instant::now();
        for news in &self.trouble.news {
            news.take();
        }
        self.trouble.hurry = Some(now + OOM_RECHECK_DURATION);
        self.look_for_trouble(true);
    }

    /// A child was stopped or goes on.
    pub(super) fn on_halt(&mut self, pid: i32, status: i32) {
        // Whoever is killed may be stopped first, and that is no news.
        if pid == self.command.pid && self.tree.foreign.is_none() && !self.ending.is_asked() {
            self.suspended(children::is_stopped(status));
        }
    }

    fn suspended(&mut self, suspended: bool) {
        if self.trouble.suspended != suspended {
            self.trouble.suspended = suspended;
            self.news();
        }
    }

    /// When to look again.
    pub(super) fn next_look_for_trouble(&self) -> Option<Instant> {
        self.trouble.look
    }

    /// Looks where it is time, or at once.
    pub(super) fn look_for_trouble(&mut self, at_once: bool) {
        let now = Instant::now();
        if !at_once && self.trouble.look.is_none_or(|look| now < look) {
            return;
        }
        let foreign = self.tree.foreign.is_some() && !self.ending.has_ended();
        if foreign && !self.ending.is_asked() {
            let stat = proc::stat(self.command.pid).ok();
            let stat = stat.filter(|stat| stat.start == self.command.start);
            self.suspended(stat.is_some_and(|stat| stat.state == b'T'));
        }
        if self.trouble.untold || !self.trouble.news.is_empty() {
            let kills = self.tree.group.oom_kills();
            if kills > self.trouble.oom_kills {
                self.trouble.oom_kills = kills;
                self.news();
            }
        }
        self.trouble.hurry = self.trouble.hurry.filter(|until| now < *until);
        let every = [
            self.trouble.hurry.map(|_| OOM_RECHECK_INTERVAL),
            foreign.then_some(FOREIGN_POLL_INTERVAL),
            self.trouble.untold.then_some(OOM_POLL_INTERVAL),
        ];
        self.trouble.look = every.into_iter().flatten().min().map(|every| now + every);
    }
}
