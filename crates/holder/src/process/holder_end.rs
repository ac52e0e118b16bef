//! The end of a holder: nothing of its session is left.

use std::io;
use std::time::{Duration, Instant};

use wharf_log::Mark;
use wharf_model::Reason;

use super::channel::Source;
use super::holder::{FIRST_PEER_TOKEN, Holder, micros, now};
use super::peer::Peer;
use super::record;
use crate::frame::{self, Kind};
use crate::linux::events::Events;
use crate::linux::own;

/// How long the last bytes may take to reach slow peers once the session is over.
const PEER_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

impl Holder {
    /// Nothing is left: drains, records, tells everybody, and leaves.
    pub(super) fn depart(mut self) -> io::Result<()> {
        self.empty_pane();
        let until = Instant::now() + Duration::from_secs(1);
        for source in [Source::Out, Source::Err] {
            while self.channel.source(source).is_some() && Instant::now() < until {
                let before = self.log.end();
                self.pump(source);
                if self.log.end() == before {
                    if self.full.is_none() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
        // Whoever was killed for want of memory was so before the end.
        self.check_command(true);
        self.let_go();
        let _ = self.log.mark(Mark::Time, micros());
        // Nobody can connect from here on. The socket's file stays until the session is removed or starts again: it
        // would only be one more deleted file, and a file system looks past those for each new one.
        drop(self.listener.take());
        let mut record = self.ending.record(&self.tree, self.started.started, now());
        record.log_end = self.log.end();
        if self.through.is_some() && record.reason != Reason::Exited {
            // It was let go, and what was passed through lives on.
            (record.code, record.signal) = (None, None);
        }
        let mut brief = false;
        let written = (0..20).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            let whole = record::write_exit(&self.home, &record);
            if attempt == 0 && whole.is_err() {
                // First of all it must outlive us, in whatever form.
                brief = record::write_exit_in_brief(&self.home, &record).is_ok();
            }
            whole.is_ok()
        });
        if !written && !brief {
            own::say(format_args!("cannot write the exit record in {}", self.home.display()));
        }
        self.tree.group.remove();
        let json = serde_json::to_vec(&record)?;
        for (peer, seq) in std::mem::take(&mut self.ending.waiting) {
            self.answer(peer, Kind::Ack, seq, &json);
        }
        let exit = frame::encode(Kind::Exit, 0, &json);
        for peer in &mut self.peers {
            peer.finish(exit.clone());
        }
        let until = Instant::now() + PEER_FLUSH_TIMEOUT;
        let mut happened = Vec::new();
        // Only peers matter from here on.
        self.events = Events::new()?;
        for peer in &self.peers {
            self.events.add(peer.fd(), FIRST_PEER_TOKEN + peer.id, peer.interest)?;
        }
        loop {
            self.settle_peers();
            if self.peers.iter().all(Peer::is_done) || Instant::now() >= until {
                return Ok(());
            }
            self.events.wait(Some(until), &mut happened)?;
            for event in happened.iter().filter(|event| event.token >= FIRST_PEER_TOKEN) {
                self.on_peer(event.token - FIRST_PEER_TOKEN, event.readable);
            }
        }
    }
}
