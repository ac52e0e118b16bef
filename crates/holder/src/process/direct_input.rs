//! Direct input: the terminal itself, handed to one who types: its keys need not wait for us to wake and pass them on.
//!
//! While another has it we type nothing. When somebody else has something to type it is asked back; one that does not answer in
//! time is not waited for.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use wharf_model::{Code, Failure, Millis};

use super::channel::Channel;
use super::holder::{Holder, now};
use crate::frame::Kind;

/// How long whoever has the terminal may take to give it back.
const RETURN_TIMEOUT: Duration = Duration::from_millis(200);

/// Who has the terminal.
#[derive(Debug)]
pub(super) struct DirectInput {
    pub(super) peer: u64,
    /// Since when it has been asked back.
    recalled: Option<Instant>,
}

impl Holder {
    /// Hands the terminal out, where nobody has it and nothing waits to be typed.
    pub(super) fn grant_direct_input(&mut self, id: u64, seq: u32) -> Result<(), Failure> {
        let Channel::Tty { master, .. } = &self.channel else {
            return Err(Failure::unsupported(
                "typing past the holder",
                "a session that has no terminal of ours",
            ));
        };
        if seq == 0 || self.direct_input.is_some() || self.input.waiting() > 0 || self.ending.has_ended() {
            return Err(Failure::new(Code::Busy, "the terminal is not free to be lent"));
        }
        let at = self.peers.iter().position(|peer| peer.id == id);
        let Some(peer) = at.map(|at| &mut self.peers[at]) else { return Ok(()) };
        if peer.answer_with(Kind::Ack, seq, &[], &[master.as_fd()]).is_err() {
            self.drop_peer(id);
            return Ok(());
        }
        self.direct_input = Some(DirectInput { peer: id, recalled: None });
        Ok(())
    }

    /// It was typed past us, at that time or just now.
    pub(super) fn typed_directly(&mut self, id: u64, payload: &[u8]) {
        let at = payload.first_chunk().map(|bytes| Millis(u64::from_le_bytes(*bytes)));
        if self.direct_input.as_ref().is_some_and(|input| input.peer == id) {
            // Older clients do not say whether their line was ended.
            if let Some(mark) = payload.get(8) {
                self.line.told(*mark);
            }
            // A clock that was set back makes nothing younger than it is.
            self.typed(at.filter(|at| at.0 > 0).unwrap_or_else(now).min(now()));
        }
    }

    /// Takes the terminal back from a peer, and types what has waited for that.
    pub(super) fn end_direct_input(&mut self, id: u64, payload: &[u8]) {
        if payload.iter().take(8).any(|byte| *byte != 0) {
            self.typed_directly(id, payload);
        }
        if self.direct_input.take_if(|input| input.peer == id).is_some() {
            self.feed();
        }
    }

    /// Whether what waits to be typed must wait on, because another has the terminal.
    pub(super) fn waits_for_terminal(&mut self) -> bool {
        if self.input.waiting() == 0 {
            return false;
        }
        let Some(input) = &mut self.direct_input else { return false };
        match input.recalled {
            None => {
                input.recalled = Some(Instant::now());
                let peer = input.peer;
                self.answer(peer, Kind::Recall, 0, &[]);
            }
            Some(since) if since.elapsed() > RETURN_TIMEOUT => self.direct_input = None,
            Some(_) => {}
        }
        self.direct_input.is_some()
    }

    /// When the terminal is not waited for any longer.
    pub(super) fn return_deadline(&self) -> Option<Instant> {
        self.direct_input.as_ref().and_then(|input| input.recalled).map(|since| since + RETURN_TIMEOUT)
    }
}
