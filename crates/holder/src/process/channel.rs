//! The command's terminal, or its three pipes, from our side.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize};
use wharf_log::{Stream, Writer};
use wharf_model::{Failure, Size};

use super::filling::fill;
use super::input::Done;
use super::pane::Pane;
use crate::wire::{Duplicate, PendingInput};

/// The most that one round moves before others get their turn.
pub(super) const MAX_MOVED_PER_TURN: usize = 64 << 10;
/// What a terminal is asked for at once.
pub(super) const PAGE_LEN: usize = 4 << 10;

/// What output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Out,
    Err,
}

/// How far a round of moving output got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// This many bytes, and perhaps there are more.
    Some(usize),
    /// Nothing is there now.
    Nothing,
    /// Nothing will come any more.
    Over,
}

/// The ends of the command's standard streams that are ours.
pub(super) enum Channel {
    Tty {
        master: OwnedFd,
        /// Kept open so that the terminal does not hang up when the command's own copies are closed, and to ask
        /// what the application has not read.
        slave: OwnedFd,
        /// Output goes through this pipe inside the kernel; whoever holds its ends can go on where we died.
        pipe: (OwnedFd, OwnedFd),
        in_pipe: usize,
        /// The last round ended before the terminal was empty.
        left: bool,
    },
    Pipes {
        stdin: Option<OwnedFd>,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
    },
    /// A terminal that another program holds.
    Pane(Pane),
}

/// The ends that the command gets.
pub(super) enum Theirs {
    Tty(OwnedFd),
    Pipes([OwnedFd; 3]),
}

impl Channel {
    /// Opens a terminal.
    pub(super) fn tty(size: Size) -> Result<(Self, Theirs), Failure> {
        let open = || -> io::Result<_> {
            let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            rustix::pty::unlockpt(&master)?;
            let slave = peer(&master)?;
            let theirs = rustix::io::fcntl_dupfd_cloexec(&slave, 3)?;
            nonblocking(&master)?;
            let pipe = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            Ok((master, slave, theirs, pipe))
        };
        let (master, slave, theirs, pipe) = open().map_err(|error| match error.raw_os_error() {
            Some(libc::ENOSPC | libc::ENOENT | libc::EAGAIN) => {
                let hint = "the system is out of terminals: raise kernel.pty.max";
                Failure::new(wharf_model::Code::Exhausted, format!("cannot open a terminal: {error}"))
                    .hint(hint)
            }
            _ => Failure::system("cannot open a terminal", &error),
        })?;
        let channel = Self::Tty { master, slave, pipe, in_pipe: 0, left: false };
        channel.resize(size).map_err(|error| Failure::system("cannot set the terminal's size", &error))?;
        Ok((channel, Theirs::Tty(theirs)))
    }

    /// Opens three pipes.
    pub(super) fn pipes() -> Result<(Self, Theirs), Failure> {
        let open = || -> io::Result<_> {
            let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
            let ((in_r, in_w), (out_r, out_w), (err_r, err_w)) = (pipe()?, pipe()?, pipe()?);
            // Only our own ends: a command does not expect a standard stream that would block.
            nonblocking(&in_w)?;
            nonblocking(&out_r)?;
            nonblocking(&err_r)?;
            let ours = Self::Pipes { stdin: Some(in_w), stdout: Some(out_r), stderr: Some(err_r) };
            Ok((ours, Theirs::Pipes([in_r, out_w, err_w])))
        };
        open().map_err(|error| Failure::system("cannot open pipes", &error))
    }

    /// A terminal that another program holds, as the command has it, with the socket to that program.
    pub(super) fn pane(terminal: OwnedFd, link: OwnedFd) -> Result<(Self, Theirs), Failure> {
        let take = || -> io::Result<_> {
            let theirs = rustix::io::fcntl_dupfd_cloexec(&terminal, 3)?;
            Ok((Self::Pane(Pane::new(terminal, link)?), Theirs::Tty(theirs)))
        };
        take().map_err(|error| Failure::system("cannot use the terminal", &error))
    }

    /// Takes over what another holder had, from the descriptors that were kept.
    pub(super) fn resume(mut kept: Vec<(Duplicate, OwnedFd)>) -> io::Result<Self> {
        let mut take =
            |what| kept.iter().position(|(kind, _)| *kind == what).map(|at| kept.swap_remove(at).1);
        if let (Some(master), Some(read), Some(write)) =
            (take(Duplicate::Terminal), take(Duplicate::PipeRead), take(Duplicate::PipeWrite))
        {
            let slave = peer(&master)?;
            let in_pipe = rustix::io::ioctl_fionread(&read)? as usize;
            return Ok(Self::Tty { master, slave, pipe: (read, write), in_pipe, left: true });
        }
        if let (Some(link), Some(terminal)) = (take(Duplicate::Link), take(Duplicate::PaneTerminal)) {
            return Ok(Self::Pane(Pane::new(terminal, link)?));
        }
        let (stdin, stdout, stderr) =
            (take(Duplicate::Stdin), take(Duplicate::Stdout), take(Duplicate::Stderr));
        if stdout.is_none() && stderr.is_none() && stdin.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no descriptor of the session was passed",
            ));
        }
        Ok(Self::Pipes { stdin, stdout, stderr })
    }

    /// The descriptors that keep the session alive, and what they are.
    pub(super) fn duplicates(&self) -> Vec<(Duplicate, BorrowedFd<'_>)> {
        match self {
            Self::Tty { master, pipe, .. } => vec![
                (Duplicate::Terminal, master.as_fd()),
                (Duplicate::PipeRead, pipe.0.as_fd()),
                (Duplicate::PipeWrite, pipe.1.as_fd()),
            ],
            Self::Pipes { stdin, stdout, stderr, .. } => {
                [(Duplicate::Stdin, stdin), (Duplicate::Stdout, stdout), (Duplicate::Stderr, stderr)]
                    .into_iter()
                    .filter_map(|(kind, fd)| Some((kind, fd.as_ref()?.as_fd())))
                    .collect()
            }
            Self::Pane(_) => Vec::new(),
        }
    }

    /// What to watch for output.
    pub(super) fn source(&self, source: Source) -> Option<BorrowedFd<'_>> {
        match (self, source) {
            (Self::Tty { master, .. }, Source::Out) => Some(master.as_fd()),
            (Self::Tty { .. } | Self::Pane(_), Source::Err) => None,
            (Self::Pane(pane), Source::Out) => pane.link(),
            (Self::Pipes { stdout, .. }, Source::Out) => stdout.as_ref().map(AsFd::as_fd),
            (Self::Pipes { stderr, .. }, Source::Err) => stderr.as_ref().map(AsFd::as_fd),
        }
    }

    /// Where input goes.
    pub(super) fn sink(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tty { master, .. } => Some(master.as_fd()),
            Self::Pipes { stdin, .. } => stdin.as_ref().map(AsFd::as_fd),
            Self::Pane(pane) => pane.link(),
        }
    }

    /// How much may be typed now, where the terminal itself does not say when it is full.
    pub(super) fn room(&mut self, waiting: usize) -> usize {
        let Self::Pane(_) = self else { return usize::MAX };
        let canonical = self.is_canonical();
        let Self::Pane(pane) = self else { return usize::MAX };
        pane.room(waiting, canonical)
    }

    /// Input was written. Where it is not in the terminal by that, those of it that are whole are kept until it is.
    pub(super) fn passed_on(&mut self, bytes: usize, whole: &mut Vec<Done>) {
        if let Self::Pane(pane) = self {
            pane.passed_on(bytes, whole);
        }
    }

    /// How the terminal treats what is typed.
    fn modes(&self) -> io::Result<LocalModes> {
        Ok(rustix::termios::tcgetattr(self.terminal()?)?.local_modes)
    }

    /// The terminal, from one side or the other.
    fn terminal(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Tty { master, .. } => Ok(master.as_fd()),
            Self::Pane(pane) => pane.terminal(),
            Self::Pipes { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Ends the input of a pipe session. A terminal has no such end.
    pub(super) fn close_input(&mut self) -> Option<OwnedFd> {
        match self {
            Self::Tty { .. } | Self::Pane(_) => None,
            Self::Pipes { stdin, .. } => stdin.take(),
        }
    }

    /// Gives up a stream whose other side is closed.
    pub(super) fn close(&mut self, source: Source) -> Option<OwnedFd> {
        match (self, source) {
            (Self::Pipes { stdout, .. }, Source::Out) => stdout.take(),
            (Self::Pipes { stderr, .. }, Source::Err) => stderr.take(),
            (Self::Pane(pane), Source::Out) => pane.close(),
            (Self::Tty { .. } | Self::Pane(_), _) => None,
        }
    }

    /// Whether this is a terminal in line mode.
    pub(super) fn is_canonical(&self) -> bool {
        self.modes().is_ok_and(|modes| modes.contains(LocalModes::ICANON))
    }

    /// Whether this is a terminal.
    pub(super) fn is_tty(&self) -> bool {
        matches!(self, Self::Tty { .. } | Self::Pane(_))
    }

    /// Moves output into the log, inside the kernel. An error is the log's: what was taken waits in the pipe.
    pub(super) fn pump(&mut self, source: Source, log: &mut Writer, now: u64) -> io::Result<Moved> {
        match self {
            Self::Tty { master, pipe, in_pipe, left, .. } => {
                let over = fill(master, &pipe.1, in_pipe)?;
                *left = over.is_none();
                let over = over.unwrap_or(Moved::Nothing);
                let mut moved = 0;
                while *in_pipe > 0 {
                    let n = log.splice_from(pipe.0.as_fd(), *in_pipe)?;
                    *in_pipe = in_pipe.saturating_sub(n);
                    moved += n;
                    if n == 0 {
                        break;
                    }
                }
                Ok(if moved > 0 { Moved::Some(moved) } else { over })
            }
            Self::Pipes { stdout, stderr, .. } => {
                let (fd, stream) =
                    if source == Source::Out { (stdout, Stream::Stdout) } else { (stderr, Stream::Stderr) };
                let Some(fd) = fd else { return Ok(Moved::Over) };
                let waiting = rustix::io::ioctl_fionread(&*fd)? as usize;
                if waiting > 0 {
                    // Before the bytes, so that nobody reads them as the other's. Free where it is the same.
                    log.mark(wharf_log::Mark::Stream(stream), now)?;
                }
                match log.splice_from(fd.as_fd(), MAX_MOVED_PER_TURN) {
                    Ok(0) => Ok(Moved::Over),
                    Ok(n) => Ok(Moved::Some(n)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Moved::Nothing),
                    Err(error) => Err(error),
                }
            }
            Self::Pane(pane) => pane.pump(log),
        }
    }

    /// Whether each round takes all that there is, or says that it did not.
    pub(super) fn is_emptied(&self) -> bool {
        matches!(self, Self::Tty { .. })
    }

    /// Whether there is output that nothing will tell us of again.
    pub(super) fn has_more(&self) -> bool {
        matches!(self, Self::Tty { left: true, .. })
    }

    /// Throws away what waits for the log, when there is no room for it. Returns how much that was. `lost` is told first:
    /// who is killed in between has declared lost what is still there, and not lost what nobody declared.
    pub(super) fn discard(
        &mut self,
        source: Source,
        mut lost: impl FnMut(usize),
    ) -> rustix::io::Result<usize> {
        let (fd, waiting) = match self {
            Self::Tty { pipe, in_pipe, .. } => (&pipe.0, *in_pipe),
            Self::Pipes { stdout, stderr, .. } => {
                let fd = if source == Source::Out { stdout } else { stderr };
                let Some(fd) = fd else { return Ok(0) };
                (&*fd, rustix::io::ioctl_fionread(&*fd)? as usize)
            }
            // It is in our own memory, or in that of a program that ends with us.
            Self::Pane(pane) => {
                let n = pane.discard(&mut [0_u8; PAGE_LEN]);
                if n > 0 {
                    lost(n);
                }
                return Ok(n);
            }
        };
        if waiting == 0 {
            return Ok(0);
        }
        lost(waiting);
        let (mut scratch, mut left) = ([0_u8; PAGE_LEN], waiting);
        while left > 0 {
            let wanted = left.min(PAGE_LEN);
            match rustix::io::read(fd, &mut scratch[..wanted])? {
                0 => break,
                n => left -= n,
            }
        }
        if let Self::Tty { in_pipe, .. } = self {
            *in_pipe = 0;
        }
        Ok(waiting)
    }

    /// Sets the terminal's size; the kernel tells the application.
    pub(super) fn resize(&self, size: Size) -> io::Result<()> {
        let terminal = self.terminal()?;
        let size = size.sane();
        let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(terminal, size)?)
    }

    /// The terminal's size as it is.
    pub(super) fn size(&self) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(self.terminal().ok()?).ok()?;
        Some(Size { cols: size.ws_col, rows: size.ws_row }.sane())
    }

    /// What the application has not read, and how the terminal treats what is typed.
    pub(super) fn pending(&self, queued: u64) -> io::Result<PendingInput> {
        match self {
            Self::Tty { master, slave, .. } => {
                let modes = rustix::termios::tcgetattr(master)?.local_modes;
                // Asking whether there is something to read brings in what is still on its way from our side.
                let mut fds = [PollFd::new(slave, PollFlags::IN)];
                let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
                Ok(PendingInput {
                    queued,
                    unread: rustix::io::ioctl_fionread(slave)?,
                    canonical: modes.contains(LocalModes::ICANON),
                    echo: modes.contains(LocalModes::ECHO),
                })
            }
            Self::Pipes { stdin, .. } => {
                let unread = stdin.as_ref().map_or(Ok(0), rustix::io::ioctl_fionread)?;
                Ok(PendingInput { queued, unread, canonical: false, echo: false })
            }
            Self::Pane(pane) => {
                let (modes, unread) = (self.modes()?, pane.unread()?);
                Ok(PendingInput {
                    queued: queued + pane.on_its_way(unread),
                    unread,
                    canonical: modes.contains(LocalModes::ICANON),
                    echo: modes.contains(LocalModes::ECHO),
                })
            }
        }
    }
}

/// The other side of a terminal, without a path: it works in any mount namespace.
fn peer(master: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    Ok(rustix::pty::ioctl_tiocgptpeer(master, flags)?)
}

pub(super) fn nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}
