//! What peers ask for.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use wharf_model::{Code, Failure, NetworkUse, Offset, Size, Text};

use super::channel::Channel;
use super::holder::{Exec, Holder};
use super::peer::Role;
use crate::frame::{Header, Kind};
use crate::linux::spawn::{self, Command};
use crate::linux::{self, own, proc};
use crate::wire::{self, Hello, StartedReply, StopRequest};

type Answer = Result<(), Failure>;

impl Holder {
    /// Does what a frame says. What cannot be done is answered with why.
    pub(super) fn request(&mut self, peer: u64, header: Header, payload: &[u8]) {
        let seq = header.seq;
        if let Err(failure) = self.allowed(peer, header.kind, payload) {
            // Also where no answer is wanted: whoever hears nothing waits for ever.
            self.refuse(peer, seq, &failure);
            return;
        }
        let answer = match Kind::known(header.kind) {
            Some(Kind::Hello) => self.on_hello(peer, seq, payload),
            Some(Kind::Input) => self.on_input(peer, seq, payload),
            Some(Kind::Cancel) => self.on_cancel(peer, seq, payload),
            Some(Kind::CloseInput) => self.on_close_input(peer, seq),
            Some(Kind::Resize) => self.on_resize(peer, seq, payload),
            Some(Kind::Signal) => self.on_signal(peer, seq, payload),
            Some(Kind::Stop) => self.on_stop(peer, seq, payload),
            Some(Kind::Status) => {
                self.reply(peer, seq, &self.status());
                Ok(())
            }
            Some(Kind::Read) => self.on_read(peer, seq, payload),
            Some(Kind::Pending) => self.on_pending(peer, seq),
            Some(Kind::Duplicates) => {
                self.on_duplicates(peer, seq);
                Ok(())
            }
            Some(Kind::Exec) => self.on_exec(peer, seq, payload),
            Some(Kind::Daemon) => self.on_daemon(peer, seq, payload),
            Some(Kind::Usage) => self.on_usage(peer, seq),
            Some(Kind::Borrow) => self
                .may_type(peer)
                .and_then(|()| self.may_be_heard())
                .and_then(|()| self.grant_direct_input(peer, seq)),
            Some(Kind::Typed) => {
                self.typed_directly(peer, payload);
                Ok(())
            }
            Some(Kind::Return) => {
                self.end_direct_input(peer, payload);
                Ok(())
            }
            _ => Err(Failure::unsupported(format!("frame {}", header.kind), "this holder")),
        };
        // Input that is not typed is worth an answer that nobody asked for.
        if let Err(failure) = answer
            && (seq != 0 || header.kind == Kind::Input as u8)
        {
            self.refuse(peer, seq, &failure);
        }
    }

    /// Whether a peer may have that done.
    fn allowed(&mut self, id: u64, kind: u8, payload: &[u8]) -> Answer {
        let kind = Kind::known(kind);
        let Some(rights) = self.peer(id).map(|peer| peer.rights) else { return Ok(()) };
        let watches = kind == Some(Kind::Hello)
            && parse::<Hello>(payload).is_ok_and(|hello| matches!(hello.role.as_str(), "attach" | "watch"));
        rights.may(kind, watches)
    }

    fn reply(&mut self, peer: u64, seq: u32, answer: &impl serde::Serialize) {
        let json = serde_json::to_vec(answer).unwrap_or_default();
        self.answer(peer, Kind::Ack, seq, &json);
    }

    fn on_hello(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        let hello: Hello = parse(payload)?;
        if let Some(peer) = self.peer(id) {
            peer.role = match hello.role.as_str() {
                "attach" => Role::Attach,
                "watch" => Role::Watch,
                _ => Role::Program,
            };
        }
        let json = serde_json::to_vec(&self.hello()).unwrap_or_default();
        self.answer(id, Kind::Welcome, seq, &json);
        if hello.role == "attach" || hello.role == "watch" {
            self.news();
        }
        Ok(())
    }

    fn on_input(&mut self, id: u64, seq: u32, bytes: &[u8]) -> Answer {
        self.may_type(id)?;
        self.may_be_heard()?;
        if self.closing_input {
            return Err(Failure::new(Code::Ended, "the session's input has been ended"));
        }
        if self.ending.has_ended() {
            return Err(Failure::new(Code::Ended, "the command has ended"));
        }
        if !self.input.push(id, seq, bytes) {
            return Err(Failure::new(Code::Busy, "the terminal takes no more input now")
                .hint("the command does not read its input"));
        }
        self.feed();
        Ok(())
    }

    fn may_type(&mut self, id: u64) -> Answer {
        match self.peer(id) {
            Some(peer) if peer.role == Role::Watch => {
                Err(Failure::new(Code::Forbidden, "a viewer may only look"))
            }
            _ => Ok(()),
        }
    }

    /// What is passed through may have nobody that reads.
    fn may_be_heard(&self) -> Answer {
        match self.through.as_ref().and_then(|through| through.unheard.as_ref()) {
            Some(why) => {
                Err(Failure::unsupported("input", "what this session passes through").hint(why.as_str()))
            }
            None => Ok(()),
        }
    }

    fn on_cancel(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        let which = u32::from_le_bytes(exactly(payload)?);
        if matches!(&self.channel, Channel::Pane(pane) if pane.is_unsettled((id, which))) {
            let why = "the program that holds the terminal has the input, and did not pass it on in time";
            return Err(Failure::new(Code::Timeout, why).hint("it may still arrive"));
        }
        let written = self.input.cancel(id, which);
        self.feed();
        self.reply(id, seq, &written);
        Ok(())
    }

    fn on_close_input(&mut self, id: u64, seq: u32) -> Answer {
        self.may_type(id)?;
        if self.through.is_some() {
            return Err(Failure::unsupported("an end of input", "what is somebody else's"));
        }
        if !self.close_input() {
            return Err(
                Failure::unsupported("an end of input", "a terminal").hint("`wharf keys NAME C-d` types one")
            );
        }
        self.answer(id, Kind::Ack, seq, &[]);
        Ok(())
    }

    fn on_resize(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        self.may_type(id)?;
        let [c0, c1, r0, r1] = exactly(payload)?;
        let size = Size { cols: u16::from_le_bytes([c0, c1]), rows: u16::from_le_bytes([r0, r1]) };
        if !self.channel.is_tty() {
            return Err(Failure::unsupported("a size", "a session without a terminal"));
        }
        if self.tree.guest {
            return Err(Failure::unsupported("a size of our own", "a terminal that is somebody else's"));
        }
        self.resize(size).map_err(|error| Failure::system("cannot resize the terminal", &error))?;
        self.answer(id, Kind::Ack, seq, &[]);
        Ok(())
    }

    fn on_signal(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        self.may_type(id)?;
        let [a, b, c, d, tree] = exactly(payload)?;
        let signal = i32::from_le_bytes([a, b, c, d]);
        let sent = if tree == 1 { self.tree.signal(signal) } else { proc::signal(&self.pidfd, signal) };
        sent.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => Failure::new(Code::Invalid, format!("{signal} is not a signal")),
            _ => Failure::system(format!("cannot send signal {signal}"), &error),
        })?;
        self.answer(id, Kind::Ack, seq, &[]);
        Ok(())
    }

    fn on_stop(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        self.may_type(id)?;
        let request: StopRequest = parse(payload)?;
        self.ending.ask(&request, &self.tree, self.channel.is_tty());
        if seq != 0 {
            self.ending.waiting.push((id, seq));
        }
        Ok(())
    }

    fn on_read(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        let from = Offset(u64::from_le_bytes(exactly(payload)?));
        if let Some(peer) = self.peer(id) {
            peer.read_from(from);
        }
        self.answer(id, Kind::Ack, seq, &[]);
        Ok(())
    }

    fn on_pending(&mut self, id: u64, seq: u32) -> Answer {
        let pending = self.channel.pending(self.input.waiting() as u64);
        let pending = pending.map_err(|error| Failure::system("cannot ask the terminal", &error))?;
        self.reply(id, seq, &pending);
        Ok(())
    }

    fn on_usage(&mut self, id: u64, seq: u32) -> Answer {
        let usage = linux::usage(&self.started.scope, &self.started.holder);
        let linux::Usage { cpu, memory, processes, io } =
            usage.map_err(|error| Failure::system("cannot measure the session", &error))?;
        let network = linux::net::traffic().map(|(received, sent)| NetworkUse { received, sent });
        self.reply(id, seq, &wire::ResourceUsage { cpu, memory, processes, io, network });
        Ok(())
    }

    fn on_duplicates(&mut self, id: u64, seq: u32) {
        // Taken out of our own hands while the descriptors, which are ours too, are lent to it.
        let Some(at) = self.peers.iter().position(|peer| peer.id == id) else { return };
        let mut peer = self.peers.swap_remove(at);
        let (kinds, fds): (Vec<_>, Vec<BorrowedFd<'_>>) = self.duplicates().into_iter().unzip();
        let started = StartedReply { descriptors: kinds, ..self.started.clone() };
        let json = serde_json::to_vec(&started).unwrap_or_default();
        let sent = peer.answer_with(Kind::Ack, seq, &json, &fds);
        self.peers.push(peer);
        if sent.is_err() {
            self.drop_peer(id);
        }
    }

    fn on_exec(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        self.may_type(id)?;
        let [control, argv, env] =
            wire::split_sections(payload).map_err(|e| Failure::new(Code::Invalid, e.to_string()))?;
        let exec: wire::Exec = parse(control)?;
        let passed = self.peer(id).map(|peer| std::mem::take(&mut peer.passed)).unwrap_or_default();
        let [input, output, error] = passed.as_slice() else {
            return Err(Failure::new(Code::Invalid, "a further command needs three descriptors"));
        };
        if self.ending.has_ended() || self.ending.is_asked() {
            return Err(Failure::new(Code::Ended, "the session is ending"));
        }
        if self.tree.guest || self.through.is_some() {
            return Err(Failure::unsupported("a further command", "a session that is somebody else's"));
        }
        let env = &*super::start::at_home(env, self.place_home);
        let dir = spawn::c_path(exec.dir.as_bytes())?;
        let entered = self.entered(argv);
        if entered.is_some() {
            spawn::look_for(argv, env, &dir)?;
        }
        let mut child = Command {
            argv: entered.as_deref().unwrap_or(argv),
            env,
            dir,
            stdio: [input.as_raw_fd(), output.as_raw_fd(), error.as_raw_fd()],
            control_terminal: exec.tty,
            cgroup: self.tree.group.birthplace(),
            umask: self.umask,
            descriptors: self.descriptors,
            channel: self.channels.as_ref().map(|(_, inside)| inside.as_raw_fd()),
        }
        .fork()?;
        self.tree
            .group
            .join(child.pid)
            .map_err(|error| Failure::system("cannot join the session's cgroup", &error))?;
        // Heard of when it is known: a directory that hangs must not hang the session.
        child.release();
        let watched = self.watch_exec(child.pid, child.gate());
        watched.map_err(|error| Failure::system("cannot watch a further command", &error))?;
        self.execs.push(Exec { pid: child.pid, child: Some(child), status: None, peer: id, seq });
        Ok(())
    }

    /// The words of a further command with those before them that keep it to what the first one is; none where nothing
    /// does.
    fn entered(&self, argv: &[u8]) -> Option<Vec<u8>> {
        if self.enter.is_empty() {
            return None;
        }
        let process = format!("{}:{}", self.command.pid, self.command.start);
        let before = self.enter.iter().map(Text::as_bytes).chain([process.as_bytes(), b"--"]);
        let mut words: Vec<u8> = before.flat_map(|word| word.iter().copied().chain([0])).collect();
        words.extend_from_slice(argv);
        Some(words)
    }

    /// Starts the daemon for a command that runs inside the session. StartedReply by that command itself it would
    /// be one of our own, and end with us.
    fn on_daemon(&mut self, id: u64, seq: u32, payload: &[u8]) -> Answer {
        let [env] = wire::split_sections(payload).map_err(|e| Failure::new(Code::Invalid, e.to_string()))?;
        let passed = self.peer(id).map(|peer| std::mem::take(&mut peer.passed)).unwrap_or_default();
        let [ready, log] = passed.as_slice() else {
            return Err(Failure::new(Code::Invalid, "a daemon needs two descriptors"));
        };
        own::daemon(&daemon_environment(env), ready, log, self.umask)
            .map_err(|error| Failure::system("cannot start the daemon", &error))?;
        self.answer(id, Kind::Ack, seq, &[]);
        Ok(())
    }
}

/// What a daemon that is started for a process of the session has as its variables: ours, which were those of the daemon
/// that started us. What the process says itself would let it choose the programs that run outside of the session.
fn daemon_environment(said: &[u8]) -> Vec<u8> {
    const READY: &[u8] = b"WHARF_READY_FD=";
    const NOT_ITS: [&[u8]; 6] =
        [b"WHARF_SESSION", b"WHARF_TOKEN", b"WHARF_READY_FD", b"WHARF_DOORS", b"TMUX", b"GLIBC_TUNABLES"];
    let mut environment = Vec::new();
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        if !NOT_ITS.iter().any(|not| name.starts_with(not)) {
            environment.extend_from_slice(&[name, b"=", value, b"\0"].concat());
        }
    }
    for variable in said.split_inclusive(|byte| *byte == 0).filter(|variable| variable.starts_with(READY)) {
        environment.extend_from_slice(variable);
    }
    environment
}

fn parse<'a, T: serde::Deserialize<'a>>(payload: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(payload)
        .map_err(|error| Failure::new(Code::Invalid, format!("a frame's JSON is wrong: {error}")))
}

fn exactly<const N: usize>(payload: &[u8]) -> Result<[u8; N], Failure> {
    payload.first_chunk().copied().ok_or_else(|| Failure::new(Code::Invalid, "a frame is too short"))
}
