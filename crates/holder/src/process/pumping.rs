//! Output: from the terminal to the log, and on to those who read along.

use std::time::{Duration, Instant};

use wharf_log::Stream;

use super::channel::{Moved, Source};
use super::holder::{ERR_TOKEN, Holder, OUT_TOKEN, micros};
use super::peer::Peer;
use crate::linux::events::Interest;

/// How long output waits for room on a full disk before it is let go, so that the agent does not stand still.
const DISK_TIMEOUT: Duration = Duration::from_secs(1);

impl Holder {
    /// Moves output to the log, and on to those who read along.
    pub(super) fn pump(&mut self, source: Source) {
        let (before, now) = (self.log.end(), micros());
        match self.channel.pump(source, &mut self.log, now) {
            Ok(Moved::Some(moved)) => {
                self.full = None;
                self.deliver(before, moved, source);
                let _ = self.log.tick(now);
            }
            Ok(Moved::Nothing) => {}
            Ok(Moved::Over) => self.close_source(source),
            // No room, or a log that somebody took away: the session goes on.
            Err(_) => {
                self.full.get_or_insert_with(Instant::now);
                self.watch_sources(None);
            }
        }
    }

    fn deliver(&mut self, at: wharf_model::Offset, moved: usize, source: Source) {
        if !self.peers.iter().any(Peer::reads) {
            return;
        }
        let stream = if source == Source::Out { Stream::Stdout } else { Stream::Stderr };
        self.scratch.resize(moved, 0);
        // From the page cache, once for all peers.
        if self.log.read_at(at, &mut self.scratch).is_ok_and(|n| n == moved) {
            for peer in &mut self.peers {
                peer.offer(at, stream, &self.scratch);
            }
        }
    }

    fn close_source(&mut self, source: Source) {
        if let Some(fd) = self.channel.source(source) {
            self.events.remove(fd);
        }
        drop(self.channel.close(source));
    }

    /// Watches the sources of output, or not at all: a hang-up is told even to those who asked for nothing.
    pub(super) fn watch_sources(&self, interest: Option<Interest>) {
        for (source, token) in [(Source::Out, OUT_TOKEN), (Source::Err, ERR_TOKEN)] {
            if let Some(fd) = self.channel.source(source) {
                match interest {
                    None => self.events.remove(fd),
                    Some(interest) => {
                        let changed = self.events.change(fd, token, interest);
                        let _ = changed.or_else(|_| self.events.add(fd, token, interest));
                    }
                }
            }
        }
    }

    /// The disk was full: tries again, and in the end lets output go so that the agent goes on.
    pub(super) fn retry_disk(&mut self) {
        self.feed();
        let since = self.full;
        for source in [Source::Out, Source::Err] {
            if self.channel.source(source).is_some() {
                self.pump(source);
            }
        }
        if self.full.is_none() {
            self.watch_sources(Some(self.output_interest()));
        } else if since.is_some_and(|since| since.elapsed() > DISK_TIMEOUT) {
            self.let_go();
        }
    }

    /// Throws away what finds no room in the log: a gap like any other.
    pub(super) fn let_go(&mut self) {
        for source in [Source::Out, Source::Err] {
            let Self { channel, log, dropped, .. } = self;
            let mut lost = |n: usize| {
                log.skip(n as u64);
                *dropped += n as u64;
            };
            while let Ok(1..) = channel.discard(source, &mut lost) {}
        }
    }

    /// The terminal is one descriptor for both directions.
    pub(super) fn output_interest(&self) -> Interest {
        Interest {
            read: true,
            write: self.sink_watched && self.channel.is_tty(),
            // To be asked about it once more after that would cost as much again.
            once: self.channel.is_emptied(),
        }
    }
}
