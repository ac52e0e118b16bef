//! What peers are told of the session.

use super::channel::Channel;
use super::holder::Holder;
use super::peer::Role;
use crate::frame::Kind;
use crate::wire::{ANSWERS, BORROW, FEATURES, Hello, HolderStatus};

impl Holder {
    /// The session as it is.
    pub(super) fn status(&self) -> HolderStatus {
        HolderStatus {
            attached: self.peers.iter().filter(|peer| peer.role != Role::Program).count() as u32,
            typists: Some(self.peers.iter().filter(|peer| peer.role == Role::Attach).count() as u32),
            pid: self.command.pid,
            size: self.size,
            last_input: self.last_input,
            line_open: self.line.is_open(),
            line_kept: self.line.is_kept(),
            input_closed: self.channel.sink().is_none(),
            dropped: self.dropped,
            suspended: self.command_watch.suspended,
            oom_kills: self.command_watch.oom_kills,
        }
    }

    /// Who we are and what we can do.
    pub(super) fn hello(&self) -> Hello {
        // What is passed through has a terminal of its own, and a place that we cannot run anything in.
        let through = self.through.is_some();
        let answers = (through || matches!(self.channel, Channel::Pane(_))).then_some(&ANSWERS);
        let has_terminal = matches!(self.channel, Channel::Tty { .. });
        let can =
            |feature: &&&str| !(through && **feature == "exec") && (has_terminal || **feature != BORROW);
        let features =
            FEATURES.iter().chain(answers).filter(can).map(|feature| (*feature).to_owned()).collect();
        Hello {
            role: "holder".into(),
            features,
            version: env!("CARGO_PKG_VERSION").into(),
            status: Some(self.status()),
            log_start: self.log.start(),
            log_end: self.log.end(),
        }
    }

    /// Tells programs what changed.
    pub(super) fn news(&mut self) {
        self.told_line = (self.line.is_open(), self.line.is_kept());
        let json = serde_json::to_vec(&self.status()).unwrap_or_default();
        // One that lets news pile up is cut off; it finds us again when it wants to.
        self.peers.retain_mut(|peer| peer.role != Role::Program || peer.answer(Kind::News, 0, &json));
    }
}
