//! The way of input: from standard input to the holder.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use rustix::io::Errno;
use wharf_holder_client::client::Client;

use crate::detach::{DetachKeys, Watch};

/// What is sent at once, and acknowledged before the next.
const MAX_WRITE_LEN: usize = 64 << 10;
/// What is typed without being acknowledged: waiting for that would wake us twice for each key.
const MAX_UNACKNOWLEDGED_LEN: usize = 1 << 10;
/// What may wait: beyond it standard input is not read.
const MAX_WAITING_LEN: usize = 4 << 20;

/// What reading standard input came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// More may come.
    More,
    /// The detach keys, or the terminal is gone.
    Detach,
}

/// Where input comes from.
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
pub(super) struct Input {
    open: bool,
    terminal: bool,
    /// Input is looked at for the detach keys alone.
    mute: bool,
    /// The end of standard input is the end of the session's.
    closes: bool,
    watch: Option<Watch>,
    waiting: Vec<u8>,
    /// The piece that is not acknowledged yet.
    sent: Option<u32>,
    /// What was sent since the last piece that is acknowledged.
    keys: usize,
    close_sent: bool,
}

impl Input {
    pub(super) fn new(keys: DetachKeys, mute: bool, closes: bool) -> Self {
        let terminal = io::stdin().is_terminal();
        Self {
            open: terminal || !mute,
            terminal,
            mute,
            closes,
            // What comes from a pipe is data, whatever bytes it has.
            watch: terminal.then(|| Watch::new(keys)),
            waiting: Vec::new(),
            sent: None,
            keys: 0,
            close_sent: false,
        }
    }

    /// Whether standard input is to be read.
    pub(super) fn wanted(&self) -> bool {
        self.open && self.waiting.len() < if self.terminal { MAX_WAITING_LEN } else { MAX_WRITE_LEN }
    }

    /// Reads what is there.
    pub(super) fn read(&mut self) -> io::Result<Typed> {
        let mut buffer = [0; 16 << 10];
        let count = match rustix::io::read(io::stdin().as_fd(), &mut buffer) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Typed::More),
            // What a terminal says that was hung up.
            Err(Errno::IO) if self.terminal => 0,
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            self.open = false;
            return Ok(if self.terminal { Typed::Detach } else { Typed::More });
        }
        let mut left = false;
        if let Some(watch) = &mut self.watch {
            left = watch.feed(&buffer[..count], &mut self.waiting);
        } else {
            self.waiting.extend_from_slice(&buffer[..count]);
        }
        if self.mute {
            self.waiting.clear();
        }
        Ok(if left { Typed::Detach } else { Typed::More })
    }

    /// Whether something was typed that is not sent yet.
    pub(super) fn has_more(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends the next piece, if the last one has arrived.
    pub(super) fn send(&mut self, client: &mut Client) -> io::Result<()> {
        if self.sent.is_some() {
            return Ok(());
        }
        if !self.waiting.is_empty() {
            let rest = self.waiting.split_off(self.waiting.len().min(MAX_WRITE_LEN));
            let piece = std::mem::replace(&mut self.waiting, rest);
            self.keys += piece.len();
            let ack = self.keys > MAX_UNACKNOWLEDGED_LEN;
            let seq = client.send_input(&piece, ack)?;
            if ack {
                (self.sent, self.keys) = (Some(seq), 0);
            }
        } else if !self.open && self.closes && !self.close_sent {
            self.close_sent = true;
            client.close_input()?;
        }
        Ok(())
    }

    /// A request was answered: whether it was input. What nobody was to acknowledge has no number.
    pub(super) fn answered(&mut self, seq: u32) -> bool {
        let piece = self.sent == Some(seq);
        if piece {
            self.sent = None;
        }
        piece || seq == 0
    }

    /// Another holder: what was on its way to the old one is not sent twice.
    pub(super) fn reconnected(&mut self) {
        self.sent = None;
        self.close_sent = false;
    }
}
