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
pub(super) struct CommandWatch {
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
    pub(super) fn watch_command(&mut self) {
        for dir in self.tree.group.memory_dirs() {
            let watched = MemoryNews::of(&dir).filter(|news| {
                let added = if news.is_urgent() {
                    self.events.add_urgent(news, MEMORY_TOKEN)
                } else {
                    self.events.add(news, MEMORY_TOKEN, Interest::READ)
                };
                added.is_ok()
            });
            self.command_watch.untold |= watched.is_none();
            self.command_watch.news.extend(watched);
        }
        self.check_command(true);
    }

    /// Something was told of memory.
    pub(super) fn on_memory(&mut self) {
        let now = Instant::now();
        for news in &self.command_watch.news {
            news.take();
        }
        self.command_watch.hurry = Some(now + OOM_RECHECK_DURATION);
        self.check_command(true);
    }

    /// A child was stopped or goes on.
    pub(super) fn on_halt(&mut self, pid: i32, status: i32) {
        // Whoever is killed may be stopped first, and that is no news.
        if pid == self.command.pid && self.tree.foreign.is_none() && !self.ending.is_asked() {
            self.suspended(children::is_stopped(status));
        }
    }

    fn suspended(&mut self, suspended: bool) {
        if self.command_watch.suspended != suspended {
            self.command_watch.suspended = suspended;
            self.news();
        }
    }

    /// When to look again.
    pub(super) fn next_command_check(&self) -> Option<Instant> {
        self.command_watch.look
    }

    /// Looks where it is time, or at once.
    pub(super) fn check_command(&mut self, at_once: bool) {
        let now = Instant::now();
        if !at_once && self.command_watch.look.is_none_or(|look| now < look) {
            return;
        }
        let foreign = self.tree.foreign.is_some() && !self.ending.has_ended();
        if foreign && !self.ending.is_asked() {
            let stat = proc::stat(self.command.pid).ok();
            let stat = stat.filter(|stat| stat.start == self.command.start);
            self.suspended(stat.is_some_and(|stat| stat.state == b'T'));
        }
        if self.command_watch.untold || !self.command_watch.news.is_empty() {
            let kills = self.tree.group.oom_kills();
            if kills > self.command_watch.oom_kills {
                self.command_watch.oom_kills = kills;
                self.news();
            }
        }
        self.command_watch.hurry = self.command_watch.hurry.filter(|until| now < *until);
        let every = [
            self.command_watch.hurry.map(|_| OOM_RECHECK_INTERVAL),
            foreign.then_some(FOREIGN_POLL_INTERVAL),
            self.command_watch.untold.then_some(OOM_POLL_INTERVAL),
        ];
        self.command_watch.look = every.into_iter().flatten().min().map(|every| now + every);
    }
}
