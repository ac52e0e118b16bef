//! A further command on pipes or on a terminal of our own making, joined to the caller's streams: what runs in a place of its
//! own never gets the caller's descriptors, which it could keep, read from and write to after the command has ended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use wharf_holder::wire::Exec;
use wharf_model::{Code, Failure, Text};

use crate::client::{Client, Event};
use crate::fresh_terminal::{self, PassedOn};

/// How many bytes are moved at once.
const CHUNK_LEN: usize = 64 << 10;

/// How often a caller's terminal is asked for its size. Its signal goes to whoever the terminal belongs to, and not to us.
const SIZE_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// What the end of the caller's input is on a terminal: the key for the end of a file.
const END_OF_FILE_KEY: u8 = 0x04;

/// Runs a command, and moves bytes until it ends. Its code, as a shell would have it.
pub fn exec(
    client: &mut Client,
    argv: &[Text],
    env: &[(Text, Text)],
    exec: &Exec,
    stdio: [BorrowedFd<'_>; 3],
) -> Result<i32, Failure> {
    let (mut pump, inner) = if exec.tty { Pump::terminal(stdio)? } else { Pump::pipes(stdio)? };
    let [input, output, error] = match &inner[..] {
        [terminal] => [terminal, terminal, terminal],
        [input, output, error] => [input, output, error],
        _ => unreachable!("a pump has one terminal or three pipes"),
    };
    let wanted = client
        .exec(argv, env, exec, [input.as_fd(), output.as_fd(), error.as_fd()])
        .map_err(|error| cannot(&error))?;
    drop(inner);
    loop {
        if pump.turn(client)? {
            let gone = !matches!(client.receive(), Ok(1..));
            // What cannot be understood is never taken in, and would pile up.
            let odd = |error: io::Error| Failure::new(Code::Unreachable, error.to_string());
            while let Some(event) = client.buffered().map_err(odd)? {
                if let Some(code) = finished(event, wanted)? {
                    // What it printed last is in the pipes already. Whoever it left behind is not waited for.
                    pump.drain();
                    let lost = pump
                        .failed
                        .map(|error| Failure::system("cannot write what the command printed", &error));
                    return lost.map_or(Ok(code), Err);
                }
            }
            if gone {
                let why = "the session's holder went away while the command ran";
                return Err(Failure::new(Code::Unreachable, why));
            }
        }
    }
}

fn cannot(error: &io::Error) -> Failure {
    Failure::system("cannot pass the command to the session", error)
}

/// The command's code, once the holder has told it.
fn finished(event: Event, wanted: u32) -> Result<Option<i32>, Failure> {
    match event {
        Event::Done { seq, answer } if seq == wanted => {
            Ok(Some(answer.first_chunk().map_or(125, |bytes| i32::from_le_bytes(*bytes))))
        }
        Event::Refused { seq, failure } if seq == wanted => Err(failure),
        Event::Exit(_) => Err(Failure::new(Code::Ended, "the session ended, and the command with it")),
        _ => Ok(None),
    }
}

struct Pump<'a> {
    /// Ours, until its end.
    stdin: Option<BorrowedFd<'a>>,
    /// The command's input, until ours has ended or nobody reads it.
    feed: Option<OwnedFd>,
    typed: Vec<u8>,
    shown: Option<(OwnedFd, BorrowedFd<'a>)>,
    complained: Option<(OwnedFd, BorrowedFd<'a>)>,
    buffer: Vec<u8>,
    /// Why the caller's output took no more, where that is not that nobody reads it.
    failed: Option<io::Error>,
    /// The caller's terminal, where the command has one and the caller's input is one.
    terminal: Option<PassedOn>,
    tty: bool,
}

impl<'a> Pump<'a> {
    /// Three pipes, and the command's ends of them.
    fn pipes([stdin, stdout, stderr]: [BorrowedFd<'a>; 3]) -> Result<(Self, Vec<OwnedFd>), Failure> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| cannot(&error.into()));
        let ((input, feed), (shown, output), (complained, error)) = (pipe()?, pipe()?, pipe()?);
        for end in [&feed, &shown, &complained] {
            rustix::io::ioctl_fionbio(end, true).map_err(|error| cannot(&error.into()))?;
        }
        let pump = Self {
            stdin: Some(stdin),
            feed: Some(feed),
            typed: Vec::new(),
            shown: Some((shown, stdout)),
            complained: Some((complained, stderr)),
            buffer: vec![0; CHUNK_LEN],
            failed: None,
            terminal: None,
            tty: false,
        };
        Ok((pump, vec![input, output, error]))
    }

    /// A terminal, and the command's end of it.
    fn terminal([stdin, stdout, _]: [BorrowedFd<'a>; 3]) -> Result<(Self, Vec<OwnedFd>), Failure> {
        let (outer, inner) = fresh_terminal::pair().map_err(|error| cannot(&error))?;
        let mut terminal = PassedOn::new(stdin).map_err(|error| cannot(&error))?;
        if let Some(terminal) = &mut terminal {
            terminal.copy_size(&outer);
        }
        let pump = Self {
            stdin: Some(stdin),
            feed: Some(outer.try_clone().map_err(|error| cannot(&error))?),
            typed: Vec::new(),
            shown: Some((outer, stdout)),
            complained: None,
            buffer: vec![0; CHUNK_LEN],
            failed: None,
            terminal,
            tty: true,
        };
        Ok((pump, vec![inner]))
    }

    /// Waits, and moves what can be moved. Whether the holder has something to say.
    fn turn(&mut self, client: &Client) -> Result<bool, Failure> {
        let mut fds = vec![PollFd::new(client, PollFlags::IN)];
        let mut watch = |fd: Option<BorrowedFd<'_>>, flags: PollFlags| {
            fd.map(|fd| {
                // SAFETY: the descriptors live in `self`, and are not closed before the poll below is over.
                #[expect(
                    unsafe_code,
                    reason = "poll wants them in one list while their owner is asked about them"
                )]
                let fd = unsafe { BorrowedFd::borrow_raw(std::os::fd::AsRawFd::as_raw_fd(&fd)) };
                fds.push(PollFd::from_borrowed_fd(fd, flags));
                fds.len() - 1
            })
        };
        let typing = self.stdin.filter(|_| self.feed.is_some() && self.typed.is_empty());
        let typing = watch(typing, PollFlags::IN);
        let feeding = if self.typed.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let feeding = watch(self.feed.as_ref().map(AsFd::as_fd), feeding);
        let shown = watch(self.shown.as_ref().map(|(from, _)| from.as_fd()), PollFlags::IN);
        let complained = watch(self.complained.as_ref().map(|(from, _)| from.as_fd()), PollFlags::IN);
        let patience = self.terminal.as_ref().map(|_| &SIZE_POLL_INTERVAL);
        match poll(&mut fds, patience) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::system("cannot wait", &error.into())),
        }
        let ready = |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
        let (typing, feeding) = (ready(typing), ready(feeding));
        let (shown, complained, told) = (ready(shown), ready(complained), ready(Some(0)));
        drop(fds);
        if let (Some(terminal), Some((outer, _))) = (&mut self.terminal, &self.shown) {
            terminal.copy_size(outer);
        }
        if typing {
            self.read();
        }
        if !self.typed.is_empty() {
            self.write();
        } else if feeding {
            // Nobody reads it any more.
            (self.feed, self.stdin) = (None, None);
        }
        if shown {
            show(&mut self.shown, &mut self.buffer, &mut self.failed);
        }
        if complained {
            show(&mut self.complained, &mut self.buffer, &mut self.failed);
        }
        Ok(told)
    }

    fn read(&mut self) {
        let Some(stdin) = self.stdin else { return };
        match rustix::io::read(stdin, &mut self.buffer) {
            Ok(count @ 1..) => self.typed.extend_from_slice(&self.buffer[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) if self.tty => {
                self.stdin = None;
                self.typed.push(END_OF_FILE_KEY);
            }
            Ok(_) | Err(_) => (self.stdin, self.feed) = (None, None),
        }
    }

    fn write(&mut self) {
        let Some(feed) = &self.feed else { return };
        match rustix::io::write(feed, &self.typed) {
            Ok(count) => drop(self.typed.drain(..count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => (self.feed, self.stdin, self.typed) = (None, None, Vec::new()),
        }
    }

    /// Shows what is there, and waits for no more.
    fn drain(&mut self) {
        while show(&mut self.shown, &mut self.buffer, &mut self.failed) {}
        while show(&mut self.complained, &mut self.buffer, &mut self.failed) {}
    }
}

/// Moves one piece to the caller. Whether there may be more at once.
fn show(
    way: &mut Option<(OwnedFd, BorrowedFd<'_>)>,
    buffer: &mut [u8],
    failed: &mut Option<io::Error>,
) -> bool {
    let Some((from, to)) = way else { return false };
    match rustix::io::read(&*from, &mut *buffer) {
        Ok(count @ 1..) => {
            let written = write_all(*to, &buffer[..count]);
            let whole = written.is_ok();
            if let Err(error) = written {
                // Nobody reads it any more, and the command is told as it would be by the caller's own.
                *way = None;
                if error.kind() != io::ErrorKind::BrokenPipe {
                    failed.get_or_insert(error);
                }
            }
            whole
        }
        Err(Errno::INTR) => true,
        Err(Errno::AGAIN) => false,
        Ok(_) | Err(_) => {
            *way = None;
            false
        }
    }
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
