//! The blocking connection to a holder: what `attach`, `exec` and benchmarks use.

use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use wharf_holder::frame::{self, Decoder, Kind};
use wharf_holder::linux;
use wharf_holder::pace::{Pace, TOO_MUCH_OUTPUT};
use wharf_holder::wire::{self, Exec, Hello};
use wharf_model::{Failure, Offset, Size, Text};

use crate::direct_input::{DirectInput, MAX_DIRECT_LEN};
pub use crate::event::Event;
use crate::greeting::{self, GREETING_TIMEOUT};
use crate::{reach, request};

/// A connection to one session's holder.
#[derive(Debug)]
pub struct Client {
    socket: UnixStream,
    frames: Decoder,
    /// What is read at once; made once, for an answer to a key is short and comes often.
    buffer: Vec<u8>,
    next: u32,
    /// How many requests were answered, and whether output was asked for: whatever else is said has a limit.
    answered: u32,
    reads: bool,
    pace: Pace,
    welcome: Hello,
    direct: DirectInput,
}

impl Client {
    /// Connects to the session in a directory. The role is `attach` for a terminal, `watch` for one that may not
    /// type, anything else for a program. An error of the kind `PermissionDenied` says that somebody else answers in the
    /// holder's place.
    pub fn connect(session: &Path, role: &str) -> io::Result<Self> {
        Self::connect_within(session, role, GREETING_TIMEOUT)
    }

    /// As `connect`, where the holder has less time to say who it is. An error of the kind `TimedOut` says that it does not.
    pub fn connect_within(session: &Path, role: &str, within: Duration) -> io::Result<Self> {
        let within = within.min(GREETING_TIMEOUT);
        let until = Instant::now() + within;
        let socket = reach::connect(session, within)?;
        let mut client = Self {
            socket,
            frames: Decoder::of_answers(),
            buffer: vec![0; 16 << 10],
            next: 0,
            answered: 0,
            reads: false,
            pace: Pace::new(Instant::now()),
            welcome: Hello::default(),
            direct: DirectInput::default(),
        };
        let greeted = client.request(Kind::Hello, &greeting::hello(role, env!("CARGO_PKG_VERSION"))?);
        // One who turns us away may have said so, and gone, before we said a word.
        if let Err(error) = greeted
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(error);
        }
        let (seq, mut received) = (client.next, 0);
        loop {
            if let Some((header, payload)) = client.frames.next()? {
                if header.kind == Kind::Welcome as u8 && header.seq == seq {
                    client.welcome = serde_json::from_slice(payload)?;
                    client.socket.set_read_timeout(None)?;
                    return Ok(client);
                }
                if header.kind == Kind::Error as u8 && header.seq == seq {
                    // Why is for the user to know: `refusal` takes it out again.
                    return Err(io::Error::other(serde_json::from_slice::<Failure>(payload)?));
                }
                continue;
            }
            // A deadline for all of it: one who says a byte now and then is not waited for longer.
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            client.socket.set_read_timeout(Some(left))?;
            received += match client.receive() {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the holder hung up")),
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(silent()),
                Err(error) => return Err(error),
            };
            if received > frame::MAX_ANSWER_LEN {
                let what = "the holder says much, and not who it is";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if Instant::now() >= until {
                return Err(silent());
            }
        }
    }

    /// What the holder said first: its features, the session's status, the bounds of its log.
    pub fn welcome(&self) -> &Hello {
        &self.welcome
    }

    /// Whether the holder can do that.
    pub fn has(&self, feature: &str) -> bool {
        self.welcome.features.iter().any(|have| have == feature)
    }

    /// Types bytes. With `ack`, [`Event::Done`] follows once all are in the terminal.
    pub fn send_input(&mut self, bytes: &[u8], ack: bool) -> io::Result<u32> {
        let mut rest = bytes;
        if !ack && bytes.len() <= MAX_DIRECT_LEN {
            rest = &bytes[self.write_directly(bytes)..];
            if rest.is_empty() {
                return Ok(0);
            }
        }
        // What goes by the holder goes behind what went past it.
        self.return_terminal()?;
        self.direct.went_by_holder(rest);
        if ack {
            return self.request(Kind::Input, rest);
        }
        if self.direct.may_ask() {
            self.next += 1;
            self.direct.asked(self.next);
            // In one piece: between the two the echo would come, and the next key after it.
            let both = [frame::encode(Kind::Input, 0, rest), frame::encode(Kind::Borrow, self.next, &[])];
            self.socket.write_all(&both.concat())?;
        } else {
            self.tell(Kind::Input, rest)?;
        }
        Ok(0)
    }

    /// Keys may go into the terminal past the holder, for as long as nobody else types. For those who type all the
    /// time, and read what the holder says.
    pub fn type_directly(&mut self) {
        self.direct.want(self.has(wire::BORROW));
    }

    /// Whether keys go past the holder just now.
    pub fn types_directly(&self) -> bool {
        self.direct.has_terminal()
    }

    /// Types what the terminal takes at once, where we have it. Returns how much.
    fn write_directly(&mut self, bytes: &[u8]) -> usize {
        let typed = self.direct.write(bytes);
        if let Some(report) = self.direct.due_report(typed) {
            // Should it fail, the next read says so.
            let _ = self.tell(Kind::Typed, &report);
        }
        typed
    }

    /// Gives the terminal back, where we have it.
    fn return_terminal(&mut self) -> io::Result<()> {
        match self.direct.give_up() {
            Some(report) => self.tell(Kind::Return, &report),
            None => Ok(()),
        }
    }

    /// Takes an input back: [`Event::Done`] with JSON follows, the number of bytes that are in the terminal all the
    /// same, or null where all of it is.
    pub fn cancel(&mut self, input: u32) -> io::Result<u32> {
        self.request(Kind::Cancel, &input.to_le_bytes())
    }

    /// Asks what the application has not read: [`Event::Done`] with the JSON of [`wire::PendingInput`] follows.
    pub fn pending(&mut self) -> io::Result<u32> {
        self.request(Kind::Pending, &[])
    }

    /// Ends the input of a pipe session.
    pub fn close_input(&mut self) -> io::Result<()> {
        self.tell(Kind::CloseInput, &[])
    }

    /// Changes the terminal's size.
    pub fn resize(&mut self, size: Size) -> io::Result<()> {
        self.tell(Kind::Resize, &request::resize(size))
    }

    /// Sends a signal to the command, or to the whole tree.
    pub fn signal(&mut self, signal: i32, tree: bool) -> io::Result<u32> {
        self.request(Kind::Signal, &request::signal(signal, tree))
    }

    /// Asks for output from an offset on.
    pub fn read_from(&mut self, from: Offset) -> io::Result<()> {
        self.reads = true;
        self.tell(Kind::Read, &from.0.to_le_bytes())
    }

    /// Runs a further command on these descriptors: [`Event::Done`] with its code as four bytes follows.
    pub fn exec(
        &mut self,
        argv: &[Text],
        env: &[(Text, Text)],
        exec: &Exec,
        stdio: [BorrowedFd<'_>; 3],
    ) -> io::Result<u32> {
        let argv = wire::strings(argv.iter().map(Text::as_bytes))?;
        let payload = wire::sections(&[&serde_json::to_vec(exec)?, &argv, &wire::variables(env)?]);
        self.request_with(Kind::Exec, &payload, &stdio)
    }

    /// Has the daemon started outside the session: `ready` is its descriptor 0, `log` gets what it prints.
    pub fn start_daemon(
        &mut self,
        env: &[(Text, Text)],
        ready: BorrowedFd<'_>,
        log: BorrowedFd<'_>,
    ) -> io::Result<u32> {
        let payload = wire::sections(&[&wire::variables(env)?]);
        self.request_with(Kind::Daemon, &payload, &[ready, log])
    }

    /// The next thing that the holder says; none when it is gone.
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.buffered()? {
                return Ok(Some(event));
            }
            if self.receive()? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next thing that has arrived already. One who says more than anybody asked for is not heard any further: an error
    /// of the kind `InvalidData`.
    pub fn buffered(&mut self) -> io::Result<Option<Event>> {
        while let Some((header, payload)) = self.frames.next()? {
            let kind = Kind::known(header.kind);
            let asked = match kind {
                Some(Kind::Output | Kind::Gap) => self.reads,
                Some(Kind::Ack | Kind::Error) => {
                    self.answered = self.answered.saturating_add(1);
                    self.answered <= self.next
                }
                _ => false,
            };
            if !asked {
                self.pace.spend(kind, payload.len());
                if self.pace.pause(Instant::now).is_some() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, TOO_MUCH_OUTPUT));
                }
            }
            if header.kind == Kind::Recall as u8 {
                self.direct.recalled();
                self.return_terminal()?;
            } else if self.direct.is_asked_by(header.seq) {
                if self.direct.answered(header.kind == Kind::Ack as u8) {
                    self.tell(Kind::Return, &[])?;
                }
            } else if let Some(event) = Event::of(header, payload)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Takes in what has arrived: call it when [`Client::as_fd`] is readable, then [`Client::buffered`] until none
    /// is left. Zero means that the holder is gone.
    pub fn receive(&mut self) -> io::Result<usize> {
        let n = match self.direct.passed() {
            Some(passed) => {
                let received = linux::receive(&self.socket, &mut self.buffer, passed)?;
                // One terminal was asked for; what else is passed is nobody's.
                passed.truncate(1);
                received
            }
            None => rustix::io::retry_on_intr(|| rustix::io::read(&self.socket, &mut self.buffer[..]))?,
        };
        self.frames.push(&self.buffer[..n]);
        Ok(n)
    }

    /// For how long [`Client::next_event`] waits before it fails with `WouldBlock`.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }

    fn request(&mut self, kind: Kind, payload: &[u8]) -> io::Result<u32> {
        self.request_with(kind, payload, &[])
    }

    fn request_with(
        &mut self,
        kind: Kind,
        payload: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<u32> {
        self.next += 1;
        let bytes = frame::encode(kind, self.next, payload);
        let went = linux::send(self.socket.as_fd(), &[IoSlice::new(&bytes)], descriptors)?;
        self.socket.write_all(&bytes[went..])?;
        Ok(self.next)
    }

    fn tell(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        self.socket.write_all(&frame::encode(kind, 0, payload))
    }
}

/// What a holder said when it would not speak with us, where that is why.
pub fn refusal(error: &io::Error) -> Option<&Failure> {
    error.get_ref()?.downcast_ref()
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn silent() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the holder did not say in time who it is")
}
