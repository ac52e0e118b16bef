//! The holder: one loop that moves output, takes requests and sees the command to its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use wharf_log::{Mark, Stream, Writer};
use wharf_model::{Code, Failure, Home, Millis, ProcessIdentity, Reason, Size};

use super::channel::{Channel, Moved, Source};
use super::ending::Ending;
use super::input::Input;
use super::peer::{Peer, Role};
use super::record;
use crate::frame::{self, Kind};
use crate::linux::events::{self, Event, Events, Interest};
use crate::linux::spawn::Child;
use crate::linux::tree::Tree;
use crate::linux::{self, children};
use crate::wire::{FEATURES, Hello, Started, Status, StopRequest};

/// Tokens of what is watched; peers count on from the last.
const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const OUT: u64 = 2;
const ERR: u64 = 3;
const SINK: u64 = 4;
const COMMAND: u64 = 5;
const PEERS: u64 = 16;
const EXECS: u64 = 1 << 62;

/// How long output waits for room on a full disk before it is let go, so that the agent does not stand still.
const DISK_PATIENCE: Duration = Duration::from_secs(1);
/// How long the last bytes may take to reach slow peers once the session is over.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long no connection is taken when the system is out of descriptors.
const DEAF: Duration = Duration::from_millis(200);
/// How long a command's parent, which is not us, may take to reap it.
const REAP_PATIENCE: Duration = Duration::from_secs(2);
/// The grace of a holder that is itself asked to go.
const OWN_GRACE: Millis = Millis(5_000);

/// A session and all that belongs to it.
pub(super) struct Holder {
    pub(super) home: PathBuf,
    pub(super) events: Events,
    pub(super) signals: OwnedFd,
    pub(super) listener: Option<UnixListener>,
    pub(super) channel: Channel,
    pub(super) log: Writer,
    pub(super) tree: Tree,
    pub(super) command: ProcessIdentity,
    pub(super) pidfd: OwnedFd,
    pub(super) started: Started,
    pub(super) size: Size,
    pub(super) umask: u32,
    pub(super) descriptors: Option<u64>,
    pub(super) execs: Vec<Exec>,
    pub(super) peers: Vec<Peer>,
    pub(super) next_peer: u64,
    pub(super) input: Input,
    pub(super) ending: Ending,
    pub(super) last_input: Option<Millis>,
    /// Since when the disk has been full.
    pub(super) full: Option<Instant>,
    pub(super) dropped: u64,
    /// Since when the command has been dead without its status being known.
    pub(super) unreaped: Option<Instant>,
    pub(super) scratch: Vec<u8>,
    pub(super) sink_watched: bool,
    /// The input ends once all that waits is typed.
    pub(super) closing_input: bool,
    /// Until when no connection is taken: the system is out of descriptors.
    pub(super) deaf: Option<Instant>,
}

/// A further command that runs.
pub(super) struct Exec {
    pub(super) pid: i32,
    /// Until it is known whether it runs.
    pub(super) child: Option<Child>,
    /// Where it ended before that.
    pub(super) status: Option<i32>,
    pub(super) peer: u64,
    pub(super) seq: u32,
}

/// Milliseconds by the wall clock, for records.
pub(super) fn now() -> Millis {
    SystemTime::now().into()
}

/// Microseconds by the wall clock, for the log's index.
pub(super) fn micros() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

impl Holder {
    /// Watches everything that is there. Called once, before the loop.
    pub(super) fn watch(&mut self) -> io::Result<()> {
        self.events.add(&self.signals, SIGNALS, Interest::READ)?;
        if let Some(listener) = &self.listener {
            self.events.add(listener, LISTENER, Interest::READ)?;
        }
        for (source, token) in [(Source::Out, OUT), (Source::Err, ERR)] {
            if let Some(fd) = self.channel.source(source) {
                self.events.add(fd, token, Interest::READ)?;
            }
        }
        if self.tree.foreign.is_some() {
            self.events.add(&self.pidfd, COMMAND, Interest::READ)?;
        }
        Ok(())
    }

    /// Takes a connection in.
    pub(super) fn welcome(&mut self, socket: UnixStream) -> io::Result<u64> {
        let peer = Peer::new(self.next_peer, socket)?;
        self.events.add(peer.fd(), PEERS + peer.id, peer.interest)?;
        self.next_peer += 1;
        let id = peer.id;
        self.peers.push(peer);
        Ok(id)
    }

    /// Holds the session until nothing of it is left.
    pub(super) fn hold(mut self) -> io::Result<()> {
        let mut happened = Vec::new();
        loop {
            self.events.wait(self.deadline(), &mut happened)?;
            for event in &happened {
                self.on(*event);
            }
            if self.full.is_some() {
                self.retry_disk();
            }
            if self.unreaped.is_some() {
                self.ask_status();
            }
            if self.deaf.is_some() {
                self.hear_again();
            }
            self.settle_peers();
            if self.ending.step(&self.tree, self.channel.is_tty(), self.unreaped.is_some()) {
                return self.depart();
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let ending = self.ending.deadline(self.tree.foreign.is_some());
        let disk = self.full.map(|_| Instant::now() + Duration::from_millis(100));
        let status = self.unreaped.map(|_| Instant::now() + Duration::from_millis(5));
        [ending, disk, status, self.deaf].into_iter().flatten().min()
    }

    fn on(&mut self, event: Event) {
        match event.token {
            LISTENER => self.accept(),
            SIGNALS => self.on_signals(),
            OUT if event.readable => self.pump(Source::Out),
            ERR if event.readable => self.pump(Source::Err),
            SINK => self.feed(),
            COMMAND => {
                self.events.remove(&self.pidfd);
                self.unreaped = Some(Instant::now());
            }
            token if token >= EXECS => self.on_exec_news((token - EXECS) as i32),
            token if token >= PEERS => self.on_peer(token - PEERS, event.readable),
            _ => {}
        }
        if event.token == OUT && event.writable {
            self.feed();
        }
    }

    /// The status of a command that is not our child is told once its parent has reaped it.
    fn ask_status(&mut self) {
        let status = linux::exit_of(self.pidfd.as_fd());
        let status = status.or_else(|| linux::proc::unreaped_status(&self.command));
        if status.is_some() || self.unreaped.is_some_and(|since| since.elapsed() > REAP_PATIENCE) {
            let (code, signal) = status.map_or((None, None), children::decode);
            self.ending.command_ended(code, signal, now());
            self.unreaped = None;
        }
    }

    fn accept(&mut self) {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                // Refused quietly: gone already.
                Ok((socket, _)) => drop(self.welcome(socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Out of descriptors. It would be told again and again.
                Err(_) => {
                    self.events.remove(listener);
                    self.deaf = Some(Instant::now() + DEAF);
                    return;
                }
            }
        }
    }

    fn hear_again(&mut self) {
        if self.deaf.is_some_and(|until| Instant::now() >= until)
            && let Some(listener) = &self.listener
        {
            self.deaf = None;
            let _ = self.events.add(listener, LISTENER, Interest::READ);
        }
    }

    fn on_signals(&mut self) {
        while let Some(signal) = events::next_signal(&self.signals) {
            match signal {
                libc::SIGCHLD | libc::SIGHUP => {}
                _ => {
                    let request = StopRequest {
                        grace: OWN_GRACE,
                        reason: Reason::Stopped,
                        by: "a signal to the holder".into(),
                    };
                    self.ending.ask(&request, &self.tree, self.channel.is_tty());
                }
            }
        }
        for (pid, status) in Tree::reap() {
            let (code, signal) = children::decode(status);
            if pid == self.command.pid && self.tree.foreign.is_none() {
                self.ending.command_ended(code, signal, now());
            }
            if let Some(at) = self.execs.iter().position(|exec| exec.pid == pid) {
                let code = code.unwrap_or(128 + signal.unwrap_or_default());
                if self.execs[at].child.is_some() {
                    self.execs[at].status = Some(code);
                } else {
                    let exec = self.execs.swap_remove(at);
                    self.answer(exec.peer, Kind::Ack, exec.seq, &code.to_le_bytes());
                }
            }
        }
    }

    /// Watches for the news whether a further command runs.
    pub(super) fn watch_exec(&self, pid: i32, gate: BorrowedFd<'_>) -> io::Result<()> {
        self.events.add(gate, EXECS + pid as u64, Interest::READ)
    }

    fn on_exec_news(&mut self, pid: i32) {
        let Some(at) = self.execs.iter().position(|exec| exec.pid == pid) else { return };
        let Some(child) = self.execs[at].child.take() else { return };
        self.events.remove(child.gate());
        let (peer, seq) = (self.execs[at].peer, self.execs[at].seq);
        match (child.outcome(), self.execs[at].status) {
            (Ok(_), None) => {}
            (Ok(_), Some(code)) => {
                self.execs.swap_remove(at);
                self.answer(peer, Kind::Ack, seq, &code.to_le_bytes());
            }
            (Err(failure), _) => {
                self.execs.swap_remove(at);
                self.refuse(peer, seq, &failure);
            }
        }
    }

    /// Moves output to the log, and on to those who read along.
    fn pump(&mut self, source: Source) {
        let before = self.log.end();
        match self.channel.pump(source, &mut self.log, micros()) {
            Ok(Moved::Some(moved)) => {
                self.full = None;
                self.deliver(before, moved, source);
                let _ = self.log.tick(micros());
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
    fn watch_sources(&self, interest: Option<Interest>) {
        for (source, token) in [(Source::Out, OUT), (Source::Err, ERR)] {
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
    fn retry_disk(&mut self) {
        self.feed();
        let since = self.full;
        for source in [Source::Out, Source::Err] {
            if self.channel.source(source).is_some() {
                self.pump(source);
            }
        }
        if self.full.is_none() {
            self.watch_sources(Some(self.output_interest()));
        } else if since.is_some_and(|since| since.elapsed() > DISK_PATIENCE) {
            for source in [Source::Out, Source::Err] {
                while let Ok(n @ 1..) = self.channel.discard(source) {
                    self.log.skip(n as u64);
                    self.dropped += n as u64;
                }
            }
        }
    }

    /// The terminal is one descriptor for both directions.
    fn output_interest(&self) -> Interest {
        Interest { read: true, write: self.sink_watched && self.channel.is_tty() }
    }

    /// Types what waits, and says so to those who typed it.
    pub(super) fn feed(&mut self) {
        let mut done = Vec::new();
        let result = match self.channel.sink() {
            Some(sink) => self.input.write(sink, &mut done),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if !done.is_empty() {
            self.last_input = Some(now());
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

    /// Asks to be told when the terminal takes more, or no longer.
    fn watch_sink(&mut self, wanted: bool) {
        if wanted == self.sink_watched {
            return;
        }
        self.sink_watched = wanted;
        if self.channel.is_tty() {
            if self.full.is_none() {
                self.watch_sources(Some(self.output_interest()));
            }
        } else if let Some(sink) = self.channel.sink() {
            if wanted {
                let _ = self.events.add(sink, SINK, Interest { read: false, write: true });
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

    /// Changes the size, and notes in the log from where on it holds.
    pub(super) fn resize(&mut self, size: Size) -> io::Result<()> {
        let size = size.sane();
        self.channel.resize(size)?;
        let _ = self.log.mark(Mark::Resize(size), micros());
        self.size = size;
        self.news();
        Ok(())
    }

    fn on_peer(&mut self, id: u64, readable: bool) {
        let Some(at) = self.peers.iter().position(|peer| peer.id == id) else { return };
        if readable && !self.peers[at].receive() {
            self.drop_peer(id);
            return;
        }
        loop {
            let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == id) else { return };
            match peer.next() {
                Ok(Some((header, payload))) => self.request(id, header, &payload),
                Ok(None) => return,
                Err(_) => {
                    self.drop_peer(id);
                    return;
                }
            }
        }
    }

    pub(super) fn peer(&mut self, id: u64) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.id == id)
    }

    pub(super) fn answer(&mut self, id: u64, kind: Kind, seq: u32, payload: &[u8]) {
        if seq == 0 && kind == Kind::Ack {
            return;
        }
        if let Some(peer) = self.peer(id)
            && !peer.answer(kind, seq, payload)
        {
            self.drop_peer(id);
        }
    }

    pub(super) fn refuse(&mut self, id: u64, seq: u32, failure: &Failure) {
        let json = serde_json::to_vec(failure).unwrap_or_default();
        self.answer(id, Kind::Error, seq, &json);
    }

    pub(super) fn drop_peer(&mut self, id: u64) {
        let Some(at) = self.peers.iter().position(|peer| peer.id == id) else { return };
        let peer = self.peers.swap_remove(at);
        self.events.remove(peer.fd());
        self.input.forget(id);
        self.watch_sink(self.input.waiting() > 0);
        if peer.role == Role::Attach {
            self.news();
        }
    }

    /// The session as it is.
    pub(super) fn status(&self) -> Status {
        Status {
            attached: self.peers.iter().filter(|peer| peer.role != Role::Program).count() as u32,
            pid: self.command.pid,
            size: self.size,
            last_input: self.last_input,
            exit: None,
            input_closed: self.channel.sink().is_none(),
            dropped: self.dropped,
        }
    }

    pub(super) fn hello(&self) -> Hello {
        Hello {
            role: "holder".into(),
            features: FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
            version: env!("CARGO_PKG_VERSION").into(),
            status: Some(self.status()),
            log_start: self.log.start(),
            log_end: self.log.end(),
        }
    }

    /// Tells programs what changed.
    pub(super) fn news(&mut self) {
        let json = serde_json::to_vec(&self.status()).unwrap_or_default();
        // One that lets news pile up is cut off; it finds us again when it wants to.
        self.peers.retain_mut(|peer| peer.role != Role::Program || peer.answer(Kind::News, 0, &json));
    }

    /// Sends what peers can take, and watches those that can take no more for now.
    fn settle_peers(&mut self) {
        let (log, end) = (self.home.join(Home::LOG), self.log.end());
        let mut gone = Vec::new();
        for peer in &mut self.peers {
            if !peer.flush(&log, end, &mut self.scratch) {
                gone.push(peer.id);
                continue;
            }
            let wanted = Interest { read: true, write: peer.waits() };
            if wanted != peer.interest {
                peer.interest = wanted;
                let _ = self.events.change(peer.fd(), PEERS + peer.id, wanted);
            }
        }
        for id in gone {
            self.drop_peer(id);
        }
        if self.scratch.capacity() > 0 && !self.peers.iter().any(Peer::reads) {
            self.scratch = Vec::new();
        }
    }

    pub(super) fn duplicates(&self) -> Vec<(crate::wire::Duplicate, BorrowedFd<'_>)> {
        let mut all = self.channel.duplicates();
        all.push((crate::wire::Duplicate::Command, self.pidfd.as_fd()));
        all
    }

    /// Nothing is left: drains, records, tells everybody, and leaves.
    fn depart(mut self) -> io::Result<()> {
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
        // What cannot be kept is a gap like any other.
        for source in [Source::Out, Source::Err] {
            while let Ok(n @ 1..) = self.channel.discard(source) {
                self.log.skip(n as u64);
            }
        }
        let _ = self.log.mark(Mark::Time, micros());
        // Before the record is there: whoever reads that may start the next run, with a socket of its own.
        drop(self.listener.take());
        let _ = std::fs::remove_file(self.home.join(Home::SOCKET));
        let mut record = self.ending.record(&self.tree, self.started.started, now());
        record.log_end = self.log.end();
        let written = (0..20).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            record::write_exit(&self.home, &record).is_ok()
        });
        if !written {
            eprintln!("wharf-holder: cannot write the exit record in {}", self.home.display());
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
        let until = Instant::now() + FAREWELL;
        let mut happened = Vec::new();
        // Only peers matter from here on.
        self.events = Events::new()?;
        for peer in &self.peers {
            self.events.add(peer.fd(), PEERS + peer.id, peer.interest)?;
        }
        loop {
            self.settle_peers();
            if self.peers.iter().all(Peer::is_done) || Instant::now() >= until {
                return Ok(());
            }
            self.events.wait(Some(until), &mut happened)?;
            for event in happened.iter().filter(|event| event.token >= PEERS) {
                self.on_peer(event.token - PEERS, event.readable);
            }
        }
    }
}
