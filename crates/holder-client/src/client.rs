//! The client side, blocking: what `attach`, `exec` and benchmarks use. The daemon has its own on top of the frames.

use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use wharf_model::{ExitRecord, Failure, Millis, Offset, Size, Text};

use wharf_holder::frame::{self, Decoder, Kind};
use wharf_holder::line::Line;
use wharf_holder::pace::{Pace, TALKS};

use crate::reach;
use wharf_holder::linux;
use wharf_holder::wire::{self, Exec, FEATURES, Hello, INPUT_NEWS_INTERVAL, Status};

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
    keys: Keys,
}

/// The way of keys past the holder, which would have to wake for each.
#[derive(Debug, Default)]
struct Keys {
    /// Whether it is wanted at all.
    wanted: bool,
    terminal: Option<OwnedFd>,
    /// The request for it that is not answered yet, and what arrived meanwhile.
    asked: Option<u32>,
    passed: Vec<OwnedFd>,
    /// Whether something went by the holder since it was asked for: that may still wait there.
    overtaken: bool,
    /// When it was last refused or asked back.
    refused: Option<Instant>,
    /// When the holder was last told that something is typed, and what it was not told of yet.
    told: Option<Instant>,
    untold: Millis,
    /// What we have typed and not submitted, and whether the holder was told that something stands there.
    line: Line,
    told_mark: u8,
}

/// How long a holder may take from the first knock to who it is.
const GREETING: Duration = Duration::from_secs(5);
/// What is short enough to be typed past the holder: a key, not a paste.
const KEY: usize = 64;
/// How soon the terminal is asked for again once it was refused or asked back.
const AGAIN: Duration = Duration::from_secs(1);

/// What a holder says.
#[derive(Debug)]
pub enum Event {
    /// Output.
    Output {
        /// Where it stands in the log.
        offset: Offset,
        /// Whether it is standard error.
        stderr: bool,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Output that is gone.
    Gap {
        /// The first missing byte.
        from: Offset,
        /// The first byte that is there again.
        to: Offset,
    },
    /// A request was done.
    Done {
        /// Which.
        seq: u32,
        /// Its answer.
        answer: Vec<u8>,
    },
    /// A request was refused.
    Refused {
        /// Which.
        seq: u32,
        /// Why.
        failure: Failure,
    },
    /// The session changed.
    News(Status),
    /// The session ended; nothing follows.
    Exit(ExitRecord),
}

impl Client {
    /// Connects to the session in a directory. The role is `attach` for a terminal, `watch` for one that may not
    /// type, anything else for a program. An error of the kind `PermissionDenied` says that somebody else answers in the
    /// holder's place.
    pub fn connect(session: &Path, role: &str) -> io::Result<Self> {
        Self::connect_within(session, role, GREETING)
    }

    /// As `connect`, where the holder has less time to say who it is. An error of the kind `TimedOut` says that it does not.
    pub fn connect_within(session: &Path, role: &str, within: Duration) -> io::Result<Self> {
        let within = within.min(GREETING);
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
            keys: Keys::default(),
        };
        let hello = Hello {
            role: role.to_owned(),
            features: FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..Hello::default()
        };
        let greeted = client.request(Kind::Hello, &serde_json::to_vec(&hello)?);
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
        if !ack && bytes.len() <= KEY {
            rest = &bytes[self.type_past(bytes)..];
            if rest.is_empty() {
                return Ok(0);
            }
        }
        // What goes by the holder goes behind what went past it.
        self.give_back()?;
        self.keys.line.typed(rest, false);
        self.keys.told_mark = self.keys.line.mark();
        self.keys.overtaken = true;
        if ack {
            return self.request(Kind::Input, rest);
        }
        let keys = &mut self.keys;
        if keys.wanted && keys.asked.is_none() && keys.refused.is_none_or(|at| at.elapsed() > AGAIN) {
            self.next += 1;
            (keys.asked, keys.overtaken) = (Some(self.next), false);
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
        self.keys.wanted = self.has(wire::BORROW);
    }

    /// Whether keys go past the holder just now.
    pub fn types_directly(&self) -> bool {
        self.keys.terminal.is_some()
    }

    /// Types what the terminal takes at once, where we have it. Returns how much.
    fn type_past(&mut self, bytes: &[u8]) -> usize {
        let Some(terminal) = &self.keys.terminal else { return 0 };
        let modes = rustix::termios::tcgetattr(terminal).map(|all| all.local_modes);
        let canonical = modes.is_ok_and(|modes| modes.contains(rustix::termios::LocalModes::ICANON));
        // What it does not take is for the holder to wait with, and why for it to say.
        let typed = rustix::io::write(terminal, bytes).unwrap_or(0);
        if typed > 0 {
            self.keys.line.typed(&bytes[..typed], canonical);
            self.keys.untold = SystemTime::now().into();
            // Whether a line was begun or ended is told at once: a message waits for its end.
            let turned = self.keys.line.mark() != self.keys.told_mark;
            if turned || self.keys.told.is_none_or(|told| told.elapsed() > INPUT_NEWS_INTERVAL) {
                self.keys.told = Some(Instant::now());
                let payload = self.typed_past();
                // Should it fail, the next read says so.
                let _ = self.tell(Kind::Typed, &payload);
            }
        }
        typed
    }

    /// What the holder is told of keys that went past it: when the last was typed, and whether its line goes on.
    fn typed_past(&mut self) -> [u8; 9] {
        let at = std::mem::take(&mut self.keys.untold);
        self.keys.told_mark = self.keys.line.mark();
        let mut payload = [self.keys.told_mark; 9];
        payload[..8].copy_from_slice(&at.0.to_le_bytes());
        payload
    }

    /// The request for the terminal was answered.
    fn lent(&mut self, granted: bool) -> io::Result<()> {
        let terminal = self.keys.passed.pop();
        if !granted {
            self.keys.refused = Some(Instant::now());
        } else if terminal.is_none() || self.keys.overtaken {
            // Where no descriptor comes with the answer, none ever will.
            self.keys.wanted = terminal.is_some();
            self.tell(Kind::Return, &[])?;
        } else {
            (self.keys.terminal, self.keys.refused) = (terminal, None);
        }
        Ok(())
    }

    /// Gives the terminal back, where we have it.
    fn give_back(&mut self) -> io::Result<()> {
        if self.keys.terminal.take().is_none() {
            return Ok(());
        }
        let payload = self.typed_past();
        self.tell(Kind::Return, &payload)
    }

    /// Takes an input back: [`Event::Done`] with JSON follows, the number of bytes that are in the terminal all the
    /// same, or null where all of it is.
    pub fn cancel(&mut self, input: u32) -> io::Result<u32> {
        self.request(Kind::Cancel, &input.to_le_bytes())
    }

    /// Asks what the application has not read: [`Event::Done`] with the JSON of [`wire::Pending`] follows.
    pub fn pending(&mut self) -> io::Result<u32> {
        self.request(Kind::Pending, &[])
    }

    /// Ends the input of a pipe session.
    pub fn close_input(&mut self) -> io::Result<()> {
        self.tell(Kind::CloseInput, &[])
    }

    /// Changes the terminal's size.
    pub fn resize(&mut self, size: Size) -> io::Result<()> {
        let [c0, c1] = size.cols.to_le_bytes();
        let [r0, r1] = size.rows.to_le_bytes();
        self.tell(Kind::Resize, &[c0, c1, r0, r1])
    }

    /// Sends a signal to the command, or to the whole tree.
    pub fn signal(&mut self, signal: i32, tree: bool) -> io::Result<u32> {
        let mut payload = [0; 5];
        payload[..4].copy_from_slice(&signal.to_le_bytes());
        payload[4] = u8::from(tree);
        self.request(Kind::Signal, &payload)
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
                    return Err(io::Error::new(io::ErrorKind::InvalidData, TALKS));
                }
            }
            if header.kind == Kind::Recall as u8 {
                if self.keys.terminal.is_some() {
                    self.keys.refused = Some(Instant::now());
                }
                self.give_back()?;
            } else if self.keys.asked.is_some_and(|seq| seq == header.seq) {
                self.keys.asked = None;
                self.lent(header.kind == Kind::Ack as u8)?;
            } else if let Some(event) = event(header, payload)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Takes in what has arrived: call it when [`Client::as_fd`] is readable, then [`Client::buffered`] until none
    /// is left. Zero means that the holder is gone.
    pub fn receive(&mut self) -> io::Result<usize> {
        let n = match self.keys.asked {
            Some(_) => {
                let received = linux::receive(&self.socket, &mut self.buffer, &mut self.keys.passed)?;
                // One terminal was asked for; what else is passed is nobody's.
                self.keys.passed.truncate(1);
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

/// What a frame means; none for one that is not news to a client of this version.
fn event(header: frame::Header, payload: &[u8]) -> io::Result<Option<Event>> {
    let word = |at: usize| -> io::Result<Offset> {
        let bytes = payload.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
        bytes.map(|bytes| Offset(u64::from_le_bytes(*bytes))).ok_or_else(|| io::ErrorKind::InvalidData.into())
    };
    Ok(Some(match Kind::known(header.kind) {
        Some(Kind::Output) => {
            let bytes = payload.get(9..).unwrap_or_default().to_vec();
            Event::Output { offset: word(0)?, stderr: payload.get(8) == Some(&1), bytes }
        }
        Some(Kind::Gap) => Event::Gap { from: word(0)?, to: word(8)? },
        Some(Kind::Ack) => Event::Done { seq: header.seq, answer: payload.to_vec() },
        Some(Kind::Error) => Event::Refused { seq: header.seq, failure: serde_json::from_slice(payload)? },
        Some(Kind::News) => Event::News(serde_json::from_slice(payload)?),
        Some(Kind::Exit) => Event::Exit(serde_json::from_slice(payload)?),
        _ => return Ok(None),
    }))
}
