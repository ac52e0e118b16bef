//! The holder: one loop that moves output, takes requests and sees the command to its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use wharf_log::{Mark, Writer};
use wharf_model::{Failure, Millis, ProcessIdentity, Reason, Size, Text};

use super::caller_rights::{CallerRights, Ours};
use super::channel::{Channel, Source};
use super::command_watch::CommandWatch;
use super::direct_input::DirectInput;
use super::ending::Ending;
use super::forsaken::Forsaken;
use super::input::Input;
use super::peer::{Peer, Role};
use crate::frame::Kind;
use crate::line::Line;
use crate::linux::events::{self, Event, Events, Interest};
use crate::linux::origin::Outside;
use crate::linux::spawn::Child;
use crate::linux::tree::Tree;
use crate::linux::{self, children};
use crate::wire::{StartedReply, StopRequest, Through};

/// Tokens of what is watched; peers count on from the last.
pub(super) const LISTENER_TOKEN: u64 = 0;
pub(super) const SIGNALS_TOKEN: u64 = 1;
pub(super) const OUT_TOKEN: u64 = 2;
pub(super) const ERR_TOKEN: u64 = 3;
pub(super) const SINK_TOKEN: u64 = 4;
pub(super) const COMMAND_TOKEN: u64 = 5;
pub(super) const MEMORY_TOKEN: u64 = 6;
pub(super) const FIRST_PEER_TOKEN: u64 = 16;
pub(super) const FIRST_EXEC_TOKEN: u64 = 1 << 62;

/// How long no connection is taken when the system is out of descriptors.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long a command's parent, which is not us, may take to reap it.
const REAP_TIMEOUT: Duration = Duration::from_secs(2);
/// The grace of a holder that is itself asked to go.
const OWN_GRACE: Millis = Millis(5_000);

/// A session and all that belongs to it.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub(super) struct Holder {
    pub(super) home: PathBuf,
    /// Whether we are in a container.
    pub(super) room: bool,
    pub(super) events: Events,
    pub(super) signals: OwnedFd,
    pub(super) listener: Option<UnixListener>,
    pub(super) channel: Channel,
    pub(super) log: Writer,
    pub(super) tree: Tree,
    pub(super) command: ProcessIdentity,
    pub(super) pidfd: OwnedFd,
    pub(super) started: StartedReply,
    pub(super) size: Size,
    pub(super) umask: u32,
    pub(super) descriptors: Option<u64>,
    pub(super) execs: Vec<Exec>,
    pub(super) forsaken: Vec<Forsaken>,
    pub(super) peers: Vec<Peer>,
    /// Who is known to be outside of all sessions.
    pub(super) outside: Outside,
    pub(super) next_peer: u64,
    pub(super) input: Input,
    /// Who has the terminal itself.
    pub(super) direct_input: Option<DirectInput>,
    pub(super) ending: Ending,
    pub(super) last_input: Option<Millis>,
    /// What was typed and not submitted.
    pub(super) line: Line,
    /// What programs were last told of that.
    pub(super) told_line: (Option<bool>, bool),
    /// When programs were last told of input.
    pub(super) told_input: Option<Instant>,
    /// Since when the disk has been full.
    pub(super) full: Option<Instant>,
    pub(super) dropped: u64,
    /// What befell the command and did not end it.
    pub(super) command_watch: CommandWatch,
    /// Since when the command has been dead without its status being known.
    pub(super) unreaped: Option<Instant>,
    pub(super) scratch: Vec<u8>,
    pub(super) sink_watched: bool,
    /// The input ends once all that waits is typed.
    pub(super) closing_input: bool,
    /// Until when no connection is taken: the system is out of descriptors.
    pub(super) deaf: Option<Instant>,
    /// What is known of what the command passes through, where it only does that.
    pub(super) through: Option<Through>,
    /// The session's own channel: the end outside, which whoever is our daemon answers on, and the one inside, for
    /// further commands. We keep both, so that it outlives every daemon, and say nothing on it ourselves.
    pub(super) channels: Option<(OwnedFd, OwnedFd)>,
    /// What a further command begins with.
    pub(super) enter: Vec<Text>,
    /// Whether further commands get the `HOME` that our place gave us.
    pub(super) place_home: bool,
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
        self.events.add(&self.signals, SIGNALS_TOKEN, Interest::READ)?;
        if let Some(listener) = &self.listener {
            self.events.add(listener, LISTENER_TOKEN, Interest::READ)?;
        }
        for (source, token) in [(Source::Out, OUT_TOKEN), (Source::Err, ERR_TOKEN)] {
            if let Some(fd) = self.channel.source(source) {
                self.events.add(fd, token, self.output_interest())?;
            }
        }
        if self.tree.foreign.is_some() {
            self.events.add(&self.pidfd, COMMAND_TOKEN, Interest::READ)?;
        }
        self.watch_command();
        Ok(())
    }

    /// Takes a connection in.
    pub(super) fn welcome(&mut self, socket: UnixStream, rights: CallerRights) -> io::Result<u64> {
        let peer = Peer::new(self.next_peer, socket, rights)?;
        self.events.add(peer.fd(), FIRST_PEER_TOKEN + peer.id, peer.interest)?;
        self.next_peer += 1;
        let id = peer.id;
        self.peers.push(peer);
        Ok(id)
    }

    /// Whoever asked for the session died before it could be told. The next daemon may have looked for sessions
    /// before there was a ticket, and the name may be another's by now: it ends, so that nothing runs that nobody
    /// knows of, and there is no second copy of it.
    pub(super) fn abandon(&mut self) {
        let by = "its daemon, which died while it was started".to_owned();
        let request = StopRequest { grace: Millis(0), reason: Reason::Lost, by };
        self.ending.ask(&request, &self.tree, self.channel.is_tty());
    }

    /// Holds the session until nothing of it is left.
    pub(super) fn hold(mut self) -> io::Result<()> {
        let mut happened = Vec::new();
        loop {
            let deadline = self.deadline();
            self.events.wait(deadline, &mut happened)?;
            for event in &happened {
                self.on(*event);
            }
            if self.full.is_some() {
                self.retry_disk();
            } else if self.channel.has_more() {
                self.pump(Source::Out);
            }
            if self.unreaped.is_some() {
                self.ask_status();
            }
            if self.deaf.is_some() {
                self.hear_again();
            }
            if self.return_deadline().is_some_and(|ends| Instant::now() > ends) {
                self.feed();
            }
            if !self.forsaken.is_empty() {
                self.end_forsaken();
            }
            self.check_command(false);
            self.look_at_pane();
            self.settle_peers();
            if self.ending.step(&self.tree, self.channel.is_tty(), self.unreaped.is_some()) {
                return self.depart();
            }
        }
    }

    fn deadline(&mut self) -> Option<Instant> {
        let ending = self.ending.deadline(self.tree.foreign.is_some());
        let disk = self.full.map(|_| Instant::now() + Duration::from_millis(100));
        let status = self.unreaped.map(|_| Instant::now() + Duration::from_millis(5));
        let input = match &mut self.channel {
            Channel::Pane(pane) => pane.next_look(self.input.waiting() > 0),
            _ => None,
        };
        let more = (self.full.is_none() && self.channel.has_more()).then(Instant::now);
        let (recall, forsaken) = (self.return_deadline(), self.forsaken_end());
        let command_watch = self.next_command_check();
        [ending, disk, status, input, self.deaf, more, recall, forsaken, command_watch]
            .into_iter()
            .flatten()
            .min()
    }

    fn on(&mut self, event: Event) {
        match event.token {
            LISTENER_TOKEN => self.accept(),
            SIGNALS_TOKEN => self.on_signals(),
            OUT_TOKEN if event.readable => self.pump(Source::Out),
            ERR_TOKEN if event.readable => self.pump(Source::Err),
            SINK_TOKEN => self.feed(),
            COMMAND_TOKEN => {
                self.events.remove(&self.pidfd);
                self.unreaped = Some(Instant::now());
            }
            MEMORY_TOKEN => self.on_memory(),
            token if token >= FIRST_EXEC_TOKEN => self.on_exec_news((token - FIRST_EXEC_TOKEN) as i32),
            token if token >= FIRST_PEER_TOKEN => self.on_peer(token - FIRST_PEER_TOKEN, event.readable),
            _ => {}
        }
        if event.token == OUT_TOKEN && event.writable {
            self.feed();
        }
    }

    /// The status of a command that is not our child is told once its parent has reaped it.
    fn ask_status(&mut self) {
        let status = linux::exit_of(self.pidfd.as_fd()).or_else(|| {
            // Where nobody reaps it, it can be looked at as it lies.
            let stat = linux::proc::stat(self.command.pid).ok()?;
            (stat.start == self.command.start && !stat.lives()).then_some(stat.status)
        });
        let status = status.or_else(|| linux::proc::unreaped_status(&self.command));
        if status.is_some() || self.unreaped.is_some_and(|since| since.elapsed() > REAP_TIMEOUT) {
            let (code, signal) = status.map_or((None, None), children::decode);
            self.ending.command_ended(code, signal, now());
            self.unreaped = None;
        }
    }

    pub(super) fn accept(&mut self) {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((socket, _)) => {
                    let ours = Ours { home: &self.home, command: &self.command, room: self.room };
                    let rights = CallerRights::of(&socket, &ours, &mut self.outside);
                    match rights.has_room(self.peers.len()) {
                        // One that cannot be taken in is gone already.
                        Ok(()) => drop(self.welcome(socket, rights)),
                        Err(full) => Peer::turn_away(&socket, &full),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Out of descriptors. It would be told again and again.
                Err(_) => {
                    self.events.remove(listener);
                    self.deaf = Some(Instant::now() + ACCEPT_RETRY_PAUSE);
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
            let _ = self.events.add(listener, LISTENER_TOKEN, Interest::READ);
        }
    }

    fn on_signals(&mut self) {
        while let Some(signal) = events::next_signal(&self.signals) {
            match signal {
                libc::SIGCHLD => {}
                libc::SIGHUP => self.look_at_files(),
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
            if children::lives(status) {
                self.on_halt(pid, status);
                continue;
            }
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
        self.events.add(gate, FIRST_EXEC_TOKEN + pid as u64, Interest::READ)
    }

    fn on_exec_news(&mut self, pid: i32) {
        let Some(at) = self.execs.iter().position(|exec| exec.pid == pid) else { return };
        let Some(child) = self.execs[at].child.take() else { return };
        self.events.remove(child.gate());
        let (peer, seq) = (self.execs[at].peer, self.execs[at].seq);
        match (child.outcome(), self.execs[at].status) {
            (Ok(_), None) => {
                if !self.peers.iter().any(|one| one.id == peer) {
                    self.forsake(peer);
                }
            }
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

    /// Changes the size, and notes in the log from where on it holds.
    pub(super) fn resize(&mut self, size: Size) -> io::Result<()> {
        let size = size.sane();
        self.channel.resize(size)?;
        if let Channel::Pane(pane) = &mut self.channel {
            pane.sized = Some(Instant::now());
        }
        let _ = self.log.mark(Mark::Resize(size), micros());
        self.size = size;
        self.news();
        Ok(())
    }

    pub(super) fn on_peer(&mut self, id: u64, readable: bool) {
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
        self.forsake(id);
        self.end_direct_input(id, &[]);
        self.watch_sink(self.input.waiting() > 0);
        if peer.role != Role::Program {
            self.news();
        }
    }

    /// Sends what peers can take, and watches those that can take no more for now.
    pub(super) fn settle_peers(&mut self) {
        let end = self.log.end();
        let mut gone = Vec::new();
        for peer in &mut self.peers {
            if !peer.flush(&self.home, end, &mut self.scratch) {
                gone.push(peer.id);
                continue;
            }
            let wanted = Interest { write: peer.waits(), ..Interest::READ };
            if wanted != peer.interest {
                peer.interest = wanted;
                let _ = self.events.change(peer.fd(), FIRST_PEER_TOKEN + peer.id, wanted);
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
        use crate::wire::Duplicate;
        let outside = self.channels.iter().map(|(outside, _)| (Duplicate::ChannelOutside, outside.as_fd()));
        // A terminal that another program holds ends with us: it would be of no use to a successor. What the session has to
        // tell, somebody must hear all the same.
        if matches!(self.channel, Channel::Pane(_)) {
            return outside.collect();
        }
        let inside = self.channels.iter().map(|(_, inside)| (Duplicate::ChannelInside, inside.as_fd()));
        let mut all = self.channel.duplicates();
        all.extend(outside.chain(inside));
        all.push((Duplicate::Command, self.pidfd.as_fd()));
        all
    }
}
