//! A terminal that another program holds, such as tmux. One socket to that program carries what is printed and what
//! is typed; the side of the terminal that the command has says how it fares.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_log::Writer;

use super::channel::Moved;
use super::input::Done;
use crate::linux::terminal;

/// What one read takes.
const READ_LEN: usize = 16 << 10;
/// What a terminal holds for an application that does not read. More would wait in the other program, where it can
/// neither be counted nor taken back.
const TERMINAL_QUEUE_LEN: usize = 4_095;
/// Room that is worth a further piece, where more waits than fits.
const MIN_CHUNK_LEN: usize = 1_024;
/// How long the other program may take to pass on what it has taken, where nothing proves that it has.
const PASS_ON_TIMEOUT: Duration = Duration::from_millis(50);
/// The first time between two looks at input that is on its way.
const MIN_UNREAD_POLL_INTERVAL: Duration = Duration::from_micros(200);
/// The longest: the time doubles while nothing moves.
const MAX_UNREAD_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Our place at such a terminal.
pub(super) struct Pane {
    /// To the program that holds the terminal; none once that has let go.
    link: Option<OwnedFd>,
    /// The terminal, as the command has it; none once nothing of the session is left to use it.
    terminal: Option<OwnedFd>,
    /// Output that found no room in the log.
    held: Vec<u8>,
    /// Input that was passed on and is not known to be in the terminal: whom to tell.
    unsettled: Vec<Done>,
    /// How many bytes were unread before the last piece was passed on.
    before: u64,
    /// How many bytes are unread when the last piece is in the terminal and nobody has read since.
    expected: u64,
    /// Whether the other program had taken everything when it let go.
    all_taken: bool,
    /// Since when the other program has had all of it.
    taken: Option<Instant>,
    /// Bytes passed on since nothing was unread: of unfinished lines nothing else can be known.
    since_empty: usize,
    /// When we last set the terminal's size.
    pub(super) sized: Option<Instant>,
    /// When to look again, and how long after that.
    look: (Instant, Duration),
}

impl Pane {
    pub(super) fn new(terminal: OwnedFd, link: OwnedFd) -> io::Result<Self> {
        super::channel::nonblocking(&link)?;
        Ok(Self {
            link: Some(link),
            terminal: Some(terminal),
            held: Vec::new(),
            unsettled: Vec::new(),
            before: 0,
            expected: 0,
            all_taken: false,
            taken: None,
            since_empty: 0,
            sized: None,
            look: (Instant::now(), MIN_UNREAD_POLL_INTERVAL),
        })
    }

    pub(super) fn link(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn terminal(&self) -> io::Result<BorrowedFd<'_>> {
        self.terminal.as_ref().map(AsFd::as_fd).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// The other program has let go.
    pub(super) fn close(&mut self) -> Option<OwnedFd> {
        self.link.take()
    }

    /// Lets go of the terminal. The other program, which alone has it now, passes on what is left and lets go too.
    pub(super) fn let_go(&mut self) {
        self.terminal = None;
    }

    /// Whether the terminal was taken away while the session still had it.
    pub(super) fn is_cut_off(&self) -> bool {
        let Some(terminal) = &self.terminal else { return false };
        let mut fds = [PollFd::new(terminal, PollFlags::empty())];
        let asked = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        self.link.is_none() || asked.is_ok() && fds[0].revents().contains(PollFlags::HUP)
    }

    /// Moves output into the log. An error is the log's: what was taken is held until there is room.
    pub(super) fn pump(&mut self, log: &mut Writer) -> io::Result<Moved> {
        if !self.held.is_empty() {
            return self.keep(log);
        }
        let Some(link) = &self.link else { return Ok(Moved::Over) };
        let mut bytes = [0_u8; READ_LEN];
        match rustix::io::read(link, &mut bytes) {
            Ok(n @ 1..) => {
                let before = log.end();
                match log.append(&bytes[..n]) {
                    Ok(()) => Ok(Moved::Some(n)),
                    Err(error) => {
                        let kept = (log.end() - before) as usize;
                        self.held = bytes[kept..n].to_vec();
                        if kept > 0 { Ok(Moved::Some(kept)) } else { Err(error) }
                    }
                }
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Moved::Nothing),
            Ok(0) => {
                // Had it not taken all that we wrote, this would have been an error.
                self.all_taken = true;
                Ok(Moved::Over)
            }
            Err(_) => Ok(Moved::Over),
        }
    }

    /// Tries again to keep what found no room.
    fn keep(&mut self, log: &mut Writer) -> io::Result<Moved> {
        let before = log.end();
        let kept = log.append(&self.held);
        let moved = (log.end() - before) as usize;
        self.held.drain(..moved);
        if self.held.is_empty() {
            self.held = Vec::new();
        }
        match kept {
            Err(error) if moved == 0 => Err(error),
            _ => Ok(Moved::Some(moved)),
        }
    }

    /// Throws away output that finds no room in the log. Returns how much that was.
    pub(super) fn discard(&mut self, scratch: &mut [u8]) -> usize {
        if !self.held.is_empty() {
            return std::mem::take(&mut self.held).len();
        }
        // What is left to the other program would pile up there without end.
        self.link.as_ref().and_then(|link| rustix::io::read(link, scratch).ok()).unwrap_or_default()
    }

    /// Bytes in the terminal that the application has not read.
    pub(super) fn unread(&self) -> io::Result<u64> {
        let terminal = self.terminal()?;
        // Asking whether there is something to read brings in what is still on its way inside the kernel.
        let mut fds = [PollFd::new(&terminal, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        Ok(rustix::io::ioctl_fionread(terminal)?)
    }

    /// Bytes that were passed on and that the terminal does not show.
    pub(super) fn on_its_way(&self, unread: u64) -> u64 {
        if self.unsettled.is_empty() && self.untaken() == 0 {
            0
        } else {
            self.expected.saturating_sub(unread)
        }
    }

    fn untaken(&self) -> usize {
        self.link.as_ref().and_then(|link| terminal::untaken(link).ok()).unwrap_or_default()
    }

    /// How much may be typed now.
    pub(super) fn room(&mut self, waiting: usize, canonical: bool) -> usize {
        if self.untaken() > 0 {
            return 0;
        }
        let unread = self.unread().unwrap_or_default() as usize;
        if unread == 0 {
            self.since_empty = 0;
        }
        self.before = unread as u64;
        let room = TERMINAL_QUEUE_LEN.saturating_sub(if canonical { self.since_empty } else { unread });
        if room < waiting && room < MIN_CHUNK_LEN { 0 } else { room }
    }

    /// Input was passed on; these of it are whole.
    pub(super) fn passed_on(&mut self, bytes: usize, whole: &mut Vec<Done>) {
        if bytes > 0 {
            self.since_empty += bytes;
            self.expected = self.before + bytes as u64;
            self.taken = None;
            self.look = (Instant::now() + MIN_UNREAD_POLL_INTERVAL, MIN_UNREAD_POLL_INTERVAL);
        } else if !whole.is_empty() {
            self.look = (Instant::now(), MIN_UNREAD_POLL_INTERVAL);
        }
        self.unsettled.append(whole);
    }

    /// Whether there is input of which nothing more is known.
    pub(super) fn waits(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Whether an input was passed on and nothing more is known of it.
    pub(super) fn is_unsettled(&self, input: Done) -> bool {
        self.unsettled.contains(&input)
    }

    /// Takes those inputs that are in the terminal now: whom to tell.
    ///
    /// They are where the application could have read them once the other program has taken all, and then either
    /// they are seen in the terminal, or that program has gone to sleep with nothing left to do.
    pub(super) fn settled(&mut self) -> Vec<Done> {
        let Some(link) = self.link.as_ref().filter(|_| !self.unsettled.is_empty()) else {
            return if self.all_taken { std::mem::take(&mut self.unsettled) } else { Vec::new() };
        };
        if terminal::untaken(link).is_ok_and(|bytes| bytes > 0) {
            return Vec::new();
        }
        let taken = *self.taken.get_or_insert_with(Instant::now);
        let seen = self.unread().is_ok_and(|unread| unread >= self.expected);
        if seen || terminal::peer_waits(link) || taken.elapsed() >= PASS_ON_TIMEOUT {
            return std::mem::take(&mut self.unsettled);
        }
        Vec::new()
    }

    /// When to look at input again, where any waits.
    pub(super) fn next_look(&mut self, waiting: bool) -> Option<Instant> {
        if self.link.is_none() || !waiting && self.unsettled.is_empty() {
            return None;
        }
        let (at, pause) = self.look;
        if Instant::now() >= at {
            // Nothing happened since: less and less often.
            self.look = (Instant::now() + pause, (pause * 2).min(MAX_UNREAD_POLL_INTERVAL));
        }
        Some(self.look.0)
    }

    /// Waits for output, or for the end of it.
    pub(super) fn wait(&self, within: Duration) {
        if let Some(link) = &self.link {
            let timeout =
                Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
            let _ = poll(&mut [PollFd::new(link, PollFlags::IN)], Some(&timeout));
        }
    }
}
