//! Input: from those who type to the terminal.

use std::io;
use std::time::Instant;

use wharf_model::{Code, Failure, Millis};

use super::channel::Channel;
use super::holder::{Holder, SINK_TOKEN, now};
use crate::frame::Kind;
use crate::linux::events::Interest;
use crate::wire::INPUT_NEWS_INTERVAL;

impl Holder {
    /// Types what waits, and says so to those who typed it.
    pub(super) fn feed(&mut self) {
        if self.waits_for_terminal() {
            return;
        }
        let mut done = Vec::new();
        let waiting = self.input.waiting();
        let room = self.channel.room(waiting);
        let canonical = waiting > 0 && self.channel.is_canonical();
        let result = match self.channel.sink() {
            Some(sink) => self.input.write(sink, room, (&mut self.line, canonical), &mut done),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        self.channel.passed_on(waiting - self.input.waiting(), &mut done);
        if !done.is_empty() {
            self.typed(now());
        }
        for (peer, seq) in done {
            self.answer(peer, Kind::Ack, seq, &[]);
        }
        if result.is_err() {
            for (peer, seq) in self.input.clear() {
                self.refuse(
                    peer,
                    seq,
                    &Failure::new(Code::Ended, "nobody reads the session's input any more"),
                );
            }
        }
        self.watch_sink(self.input.waiting() > 0);
        if self.closing_input && self.input.waiting() == 0 {
            self.closing_input = false;
            drop(self.channel.close_input());
            self.news();
        }
    }

    /// Something was typed.
    pub(super) fn typed(&mut self, at: Millis) {
        self.last_input = self.last_input.max(Some(at));
        // Whoever types for others waits while somebody types: that is worth knowing soon, and not for each key. But one
        // who has begun a line, or ended it, is known to have done so.
        let turned = self.told_line != (self.line.is_open(), self.line.is_kept());
        if turned || self.told_input.is_none_or(|told| told.elapsed() > INPUT_NEWS_INTERVAL) {
            self.told_input = Some(Instant::now());
            self.news();
        }
    }

    /// Asks to be told when the terminal takes more, or no longer.
    pub(super) fn watch_sink(&mut self, wanted: bool) {
        // A program that holds a terminal takes everything at once: when there is room is not for it to say.
        if wanted == self.sink_watched || matches!(self.channel, Channel::Pane(_)) {
            return;
        }
        self.sink_watched = wanted;
        if self.channel.is_tty() {
            if self.full.is_none() {
                self.watch_sources(Some(self.output_interest()));
            }
        } else if let Some(sink) = self.channel.sink() {
            if wanted {
                let _ = self.events.add(sink, SINK_TOKEN, Interest::WRITE);
            } else {
                self.events.remove(sink);
            }
        }
    }

    /// Ends the input of a pipe session, after what waits to be typed.
    pub(super) fn close_input(&mut self) -> bool {
        if self.channel.is_tty() {
            return false;
        }
        self.closing_input = true;
        self.feed();
        true
    }
}
